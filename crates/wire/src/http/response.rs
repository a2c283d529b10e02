//! A response head: how long a body, and whether another message follows.

use std::mem::MaybeUninit;

use allowlist::Refusal;

use super::fields::{Connection, Version, elements, read_length, same_name, set_once};
use super::head::HeadReader;
use super::{BodyLength, MAX_FIELDS, Method, RequestHead};

/// What the router has to know of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code, 100 to 999.
    pub status: u16,
    /// How long the body is.
    pub body: BodyLength,
    /// The connection ends after this response: `Connection: close`, HTTP/1.0 without `keep-alive`, or a body that
    /// ends with the connection.
    pub close: bool,
}

impl ResponseHead {
    /// Whether this is a 1xx after which another head follows (RFC 9110 section 15.2): all but 101.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Whether the connection is no longer HTTP after this response: the upstream's 101 to a request that offered
    /// it, and nothing else (RUSTSEC-2026-0033).
    #[must_use]
    pub const fn switches_protocols(&self, request: &RequestHead) -> bool {
        self.status == 101 && request.upgrade
    }
}

/// Reads the head of a response to a request with `method`; `head` must be exactly what [`HeadReader`] found.
///
/// # Errors
/// [`Refusal::MalformedResponse`] for what is not HTTP/1 or does not say clearly where its body ends.
pub fn parse_response(head: &[u8], method: Method) -> Result<ResponseHead, Refusal> {
    read(head, method).ok_or(Refusal::MalformedResponse)
}

fn read(head: &[u8], method: Method) -> Option<ResponseHead> {
    if HeadReader::for_response().advance(head).ok()? != Some(head.len()) {
        return None;
    }
    let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut response, head, &mut slots) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        _ => return None,
    }
    let version = Version::from_minor(response.version)?;
    let status = response.code.filter(|code| (100..=999).contains(code))?;

    let mut connection = Connection::default();
    let mut content_length = None;
    let mut transfer_coding = None;
    for field in &*response.headers {
        let name = field.name.as_bytes();
        match name.len() {
            10 if same_name(name, b"connection") => elements(field.value).for_each(|option| connection.add(option)),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                set_once(&mut content_length, read_length(field.value)?)?;
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                for coding in elements(field.value) {
                    // RFC 9112 section 6.1: chunked once, and last.
                    if coding.is_empty() || transfer_coding == Some(Coding::Chunked) {
                        return None;
                    }
                    transfer_coding = Some(Coding::read(coding));
                }
            }
            _ => {}
        }
    }
    // RFC 9112 section 6.3, in its order, but what a server must not send is refused rather than repaired.
    let body = match (transfer_coding, content_length) {
        (Some(_), Some(_)) => return None,
        (Some(_), None) if version == Version::Http10 => return None,
        _ if method == Method::Head || matches!(status, 100..=199 | 204 | 304) => BodyLength::None,
        (Some(Coding::Chunked), None) => BodyLength::Chunked,
        (None, Some(length)) => BodyLength::Length(length),
        (Some(Coding::Other) | None, None) => BodyLength::UntilClose,
    };
    Some(ResponseHead {
        status,
        body,
        close: connection.ends(version) || body == BodyLength::UntilClose,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    Other,
}

impl Coding {
    fn read(coding: &[u8]) -> Self {
        if coding.eq_ignore_ascii_case(b"chunked") {
            Self::Chunked
        } else {
            Self::Other
        }
    }
}
