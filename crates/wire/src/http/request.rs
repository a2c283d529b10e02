//! A request head: whose host, how long a body, and what follows.

use std::mem::MaybeUninit;

use allowlist::{HostName, Refusal};
use httparse::Header;

use super::fields::{Connection, Version, elements, is_decisive, read_length, same_name, set_once, untrimmed_value};
use super::head::{HeadReader, is_token};
use super::host::read_authority;
use super::{BodyLength, MAX_FIELDS, Method};

/// What the router has to know of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The host of the Host field, and of the target if that names one.
    pub host: HostName,
    /// What framing the response needs.
    pub method: Method,
    /// How long the body is. Never [`BodyLength::UntilClose`].
    pub body: BodyLength,
    /// The client offers to switch protocols (RFC 9110 section 7.8), so that a 101 is a fitting answer.
    pub upgrade: bool,
    /// The client wants the connection to end after this request: `Connection: close`, or HTTP/1.0 without
    /// `keep-alive`.
    pub close: bool,
}

/// Reads a request head, which must be exactly what [`HeadReader`] found.
///
/// # Errors
/// The rule that `head` breaks; faults of the first line go first, then those of fields in their order.
pub fn parse_request(head: &[u8]) -> Result<RequestHead, Refusal> {
    // Nothing below relies on the caller having done this, and it costs a table walk.
    if HeadReader::new().advance(head)? != Some(head.len()) {
        return Err(Refusal::MalformedRequest);
    }
    let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(head, &mut slots) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::HeadTooLarge),
        _ => return Err(Refusal::MalformedRequest),
    }
    let name = request.method.unwrap_or_default();
    let method = read_method(name)?;
    let version = Version::from_minor(request.version).ok_or(Refusal::MalformedRequest)?;
    let target_authority = read_target(name, request.path.unwrap_or_default())?;

    let mut fields = Fields::default();
    for field in &*request.headers {
        fields.add(head, field)?;
    }
    let host = read_authority(fields.host.ok_or(Refusal::MissingHost)?)?;
    if let Some(authority) = target_authority
        && read_authority(authority)? != host
    {
        return Err(Refusal::HostMismatch);
    }
    Ok(RequestHead {
        host,
        method,
        body: fields.body(version)?,
        // RFC 9110 section 7.8: a server ignores Upgrade without the connection option, and in HTTP/1.0.
        upgrade: fields.upgrade && fields.connection.upgrade && version == Version::Http11,
        close: fields.connection.ends(version),
    })
}

fn read_method(name: &str) -> Result<Method, Refusal> {
    match name {
        "HEAD" => Ok(Method::Head),
        // Methods are case-sensitive (RFC 9110 section 9.1), but a server that thinks otherwise would see a tunnel
        // or send no body.
        _ if name.eq_ignore_ascii_case("CONNECT") => Err(Refusal::ConnectMethod),
        _ if name.eq_ignore_ascii_case("HEAD") => Err(Refusal::MalformedRequest),
        _ => Ok(Method::Other),
    }
}

/// The authority in the target, if it has one (RFC 9112 section 3.2). CONNECT and its authority-form are gone by now.
fn read_target<'a>(method: &str, target: &'a str) -> Result<Option<&'a [u8]>, Refusal> {
    const SCHEME: &str = "http://";
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Ok(None);
    }
    match target.split_at_checked(SCHEME.len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(SCHEME) && !rest.contains('#') => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            Ok(Some(rest.as_bytes().get(..end).unwrap_or_default()))
        }
        _ => Err(Refusal::MalformedRequest),
    }
}

/// The fields that count, before they are weighed together.
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    content_length: Option<u64>,
    transfer_encoding: Option<&'a [u8]>,
    connection: Connection,
    upgrade: bool,
}

impl<'a> Fields<'a> {
    fn add(&mut self, head: &'a [u8], field: &Header<'a>) -> Result<(), Refusal> {
        let name = field.name.as_bytes();
        let exact = || untrimmed_value(head, field);
        // Most fields are none of these and are told apart by their length.
        match name.len() {
            4 if same_name(name, b"host") => set_once(&mut self.host, exact()).ok_or(Refusal::DuplicateHost)?,
            14 | 17 if is_decisive(name) && name.contains(&b'_') => return Err(Refusal::AmbiguousFraming),
            14 if same_name(name, b"content-length") => read_length(exact())
                .and_then(|length| set_once(&mut self.content_length, length))
                .ok_or(Refusal::AmbiguousFraming)?,
            17 if same_name(name, b"transfer-encoding") => {
                set_once(&mut self.transfer_encoding, exact()).ok_or(Refusal::UnsupportedTransferEncoding)?;
            }
            14 if same_name(name, b"http2-settings") => return Err(Refusal::CleartextHttp2),
            7 if same_name(name, b"upgrade") => {
                if elements(field.value).any(is_http2) {
                    return Err(Refusal::CleartextHttp2);
                }
                self.upgrade = true;
            }
            10 if same_name(name, b"connection") => {
                for option in elements(field.value) {
                    // An upstream that obeys would drop what the router decided by.
                    if is_decisive(option) || !option.iter().all(|&b| is_token(b)) {
                        return Err(Refusal::MalformedRequest);
                    }
                    self.connection.add(option);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// RFC 9112 section 6.3, without its mercy: none of the two, one valid length, or `chunked` alone on HTTP/1.1.
    fn body(&self, version: Version) -> Result<BodyLength, Refusal> {
        match (self.transfer_encoding, self.content_length) {
            (None, None) => Ok(BodyLength::None),
            (None, Some(length)) => Ok(BodyLength::Length(length)),
            (Some(_), Some(_)) => Err(Refusal::AmbiguousFraming),
            (Some(coding), None) if version == Version::Http11 && coding.eq_ignore_ascii_case(b"chunked") => {
                Ok(BodyLength::Chunked)
            }
            (Some(_), None) => Err(Refusal::UnsupportedTransferEncoding),
        }
    }
}

/// `h2c` (RFC 7540 section 3.2), its drafts (`h2c-14`), `h2` and `HTTP/2.0`: inside, every stream names a host.
fn is_http2(protocol: &[u8]) -> bool {
    let name = protocol.split(|&b| b == b'/').next().unwrap_or_default().trim_ascii();
    let starts_with = |known: &[u8]| {
        name.get(..known.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(known))
    };
    starts_with(b"h2") || name.eq_ignore_ascii_case(b"http")
}
