//! The ClientHello message itself (RFC 8446 section 4.1.2, RFC 5246 section 7.4.1.2).

use std::collections::BTreeSet;

use super::{ClientHello, HostName, Refusal};
use allowlist::NameError;
use tls_parser::{
    SNIType, TlsExtension, TlsExtensionType, parse_tls_extension_sni_hostname, parse_tls_extension_unknown,
    parse_tls_handshake_client_hello,
};

/// encrypted_client_hello (RFC 9849), which tls-parser 0.12 has no name for.
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Reads a whole ClientHello, without the message header.
pub(super) fn read(message: &[u8]) -> Result<ClientHello, Refusal> {
    let (rest, hello) = parse_tls_handshake_client_hello(message).map_err(|_| Refusal::MalformedHello)?;
    // tls-parser takes extensions that do not fit for no extensions and leaves their bytes over.
    if !rest.is_empty() {
        return Err(Refusal::MalformedHello);
    }
    // legacy_version is 0x0303 in TLS 1.3 and 0x03xx in all before it; both lists have at least one entry.
    if hello.version.0 >> 8 != 3 || hello.ciphers.is_empty() || hello.comp.is_empty() {
        return Err(Refusal::MalformedHello);
    }
    let extensions = Extensions::read(hello.ext.unwrap_or_default())?;
    let server_name = extensions.server_name.ok_or(Refusal::MissingSni)?;
    Ok(ClientHello {
        name: read_server_name(server_name)?,
        ech: extensions.ech,
    })
}

/// What the extensions say about the destination; all others, known or not (GREASE, RFC 8701), are skipped.
struct Extensions<'a> {
    server_name: Option<&'a [u8]>,
    ech: bool,
}

impl<'a> Extensions<'a> {
    /// `parse_tls_client_hello_extensions` ends at the first malformed extension without a word and lets duplicates
    /// pass, so the list is walked here, one extension at a time and none of them interpreted.
    fn read(mut list: &'a [u8]) -> Result<Self, Refusal> {
        let mut found = Self {
            server_name: None,
            ech: false,
        };
        let mut seen = Seen::default();
        while !list.is_empty() {
            let (rest, extension) = parse_tls_extension_unknown(list).map_err(|_| Refusal::MalformedHello)?;
            let TlsExtension::Unknown(kind, data) = extension else {
                return Err(Refusal::MalformedHello);
            };
            // RFC 8446 section 4.2: no two extensions of one type. nginx takes the first server_name, Squid the last.
            if !seen.insert(kind.0) {
                return Err(match kind {
                    TlsExtensionType::ServerName => Refusal::DuplicateSni,
                    _ => Refusal::MalformedHello,
                });
            }
            if kind == TlsExtensionType::ServerName {
                found.server_name = Some(data);
            }
            found.ech |= kind.0 == ENCRYPTED_CLIENT_HELLO;
            list = rest;
        }
        Ok(found)
    }
}

/// The extension types of a hello so far. The usual ones fit in a word; a tree for the others keeps a hello with
/// thousands of extensions from costing the square of their number.
#[derive(Default)]
struct Seen {
    low: u64,
    high: BTreeSet<u16>,
}

impl Seen {
    /// Adds `kind`; false if it is there already.
    fn insert(&mut self, kind: u16) -> bool {
        if kind >= 64 {
            return self.high.insert(kind);
        }
        let bit = 1 << kind;
        let new = self.low & bit == 0;
        self.low |= bit;
        new
    }
}

/// Reads a ServerNameList (RFC 6066 section 3) that holds one host_name and nothing else.
///
/// `parse_tls_extension_sni_content` drops what it cannot read at the end of the list and behind it, so the list is
/// opened here.
fn read_server_name(data: &[u8]) -> Result<HostName, Refusal> {
    let list = match data {
        [] | [0, 0] => return Err(Refusal::EmptySni),
        [high, low, list @ ..] if usize::from(u16::from_be_bytes([*high, *low])) == list.len() => list,
        _ => return Err(Refusal::MalformedSni),
    };
    let (rest, name) = read_entry(list)?;
    if !rest.is_empty() {
        return Err(read_entry(rest).map_or(Refusal::MalformedSni, |_| Refusal::DuplicateSni));
    }
    HostName::from_wire(name).map_err(|error| match error {
        NameError::Empty => Refusal::EmptySni,
        NameError::IpLiteral => Refusal::IpLiteral,
        NameError::TrailingDot => Refusal::SniTrailingDot,
        _ => Refusal::InvalidName,
    })
}

/// One entry of the list. No name type but host_name was ever defined, nor how long another's entry would be.
fn read_entry(list: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    match parse_tls_extension_sni_hostname(list) {
        Ok((rest, (SNIType::HostName, name))) => Ok((rest, name)),
        _ => Err(Refusal::MalformedSni),
    }
}
