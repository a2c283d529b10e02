//! HTTP/1 as a router needs it: where a head ends, which host it is for, and how long its body is.
//!
//! The router forwards bytes unaltered, so whatever an upstream could read differently from this module is a
//! smuggling hole. Every doubt is therefore a refusal: RFC 9112 without the leniency it grants to recipients.
//!
//! For each request in turn: [`HeadReader`] finds the end of the head, [`parse_request`] reads it, [`BodyReader`]
//! follows the body. The same on the way back with [`HeadReader::for_response`], [`parse_response`] (again after an
//! interim 1xx) and [`BodyReader::for_response`]. What is refused is answered with [`refusal_response`].

mod body;
mod chunked;
mod fields;
mod head;
mod host;
mod refusal;
mod request;
mod response;

use allowlist::Refusal;

pub use body::BodyReader;
pub use head::HeadReader;
pub use refusal::{refusal_response, status};
pub use request::{RequestHead, parse_request};
pub use response::{ResponseHead, parse_response};

/// Longest head, from the first byte of its first line to the end of its empty line: 16 KiB, HAProxy's default buffer
/// size and twice what most servers take.
pub const MAX_HEAD: usize = 16 * 1024;

/// Most fields of a head (Apache's default `LimitRequestFields`).
pub const MAX_FIELDS: usize = 100;

/// What framing has to know of a request's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `HEAD`: its response has no body, whatever the fields say (RFC 9112 section 6.3).
    Head,
    /// Any other method but CONNECT, which is always refused.
    Other,
}

/// How long a body is (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body at all.
    None,
    /// This many bytes.
    Length(u64),
    /// As the chunked coding says.
    Chunked,
    /// Everything until the connection ends. Responses only.
    UntilClose,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
}

impl Direction {
    /// A client is told which rule it broke; of an upstream's answer there is one thing to say.
    const fn refuse(self, refusal: Refusal) -> Refusal {
        match self {
            Self::Request => refusal,
            Self::Response => Refusal::MalformedResponse,
        }
    }
}

#[cfg(test)]
mod tests;
