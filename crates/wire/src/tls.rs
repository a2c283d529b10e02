//! The first message of a TLS connection: which server does the client ask for?
//!
//! Nothing is decrypted and no byte is altered. The reader is stricter than the servers behind it on purpose: two
//! readers that disagree about the name are a way round the allowlist.

mod alert;
mod hello;
mod records;

use allowlist::{HostName, Refusal};

pub use alert::alert;
pub use records::{HelloReader, MAX_HELLO, MAX_RECEIVED};

/// What a well-formed ClientHello says about its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The one host_name of the one server_name extension (RFC 6066 section 3), in lower case.
    pub name: HostName,
    /// Whether there is an encrypted_client_hello extension (RFC 9849): `name` is then the outer name. Browsers send a
    /// dummy one ("GREASE ECH") with the real name outside, so this alone is no reason to refuse.
    pub ech: bool,
}
