//! Tests by rule; those for a public bug carry its name.

mod bodies;
mod heads;
mod properties;
mod refusals;
mod requests;
mod responses;

use allowlist::Refusal;

use super::{HeadReader, RequestHead, ResponseHead};

/// The verdict on bytes that arrive at once and hold one head.
fn request(bytes: impl AsRef<[u8]>) -> Result<RequestHead, Refusal> {
    let bytes = bytes.as_ref();
    let length = HeadReader::new().advance(bytes)?.ok_or(Refusal::HeadIncomplete)?;
    super::parse_request(&bytes[..length])
}

fn response(bytes: impl AsRef<[u8]>, method: super::Method) -> Result<ResponseHead, Refusal> {
    let bytes = bytes.as_ref();
    let length = HeadReader::for_response()
        .advance(bytes)?
        .ok_or(Refusal::HeadIncomplete)?;
    super::parse_response(&bytes[..length], method)
}

/// A GET on HTTP/1.1 with these lines for fields.
fn get(fields: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\n{fields}\r\n").into_bytes()
}

/// A POST for a good host with these lines for further fields.
fn post(fields: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: example.com\r\n{fields}\r\n").into_bytes()
}
