//! What a refused TLS client is told.

use super::Refusal;

/// The fatal alert record for a refusal (RFC 8446 section 6). Write it, shut down the writing side and drain for a while
/// before closing, or the client sees a reset in place of the alert.
///
/// Refusals of policy are `unrecognized_name`: clients print it, and it says which part of the request was the trouble.
#[must_use]
pub fn alert(refusal: Refusal) -> [u8; 7] {
    const ALERT: u8 = 21;
    const FATAL: u8 = 2;
    [ALERT, 3, 3, 0, 2, FATAL, description(refusal)]
}

/// AlertDescription (RFC 8446 section 6; `unrecognized_name` RFC 6066 section 9).
fn description(refusal: Refusal) -> u8 {
    const UNEXPECTED_MESSAGE: u8 = 10;
    const RECORD_OVERFLOW: u8 = 22;
    const ILLEGAL_PARAMETER: u8 = 47;
    const ACCESS_DENIED: u8 = 49;
    const DECODE_ERROR: u8 = 50;
    const PROTOCOL_VERSION: u8 = 70;
    const INTERNAL_ERROR: u8 = 80;
    const MISSING_EXTENSION: u8 = 109;
    const UNRECOGNIZED_NAME: u8 = 112;

    match refusal {
        Refusal::NameNotAllowed | Refusal::PortNotAllowed | Refusal::Revoked => UNRECOGNIZED_NAME,
        Refusal::InvalidName | Refusal::IpLiteral | Refusal::SniTrailingDot | Refusal::DuplicateSni => {
            ILLEGAL_PARAMETER
        }
        Refusal::MissingSni => MISSING_EXTENSION,
        Refusal::EmptySni | Refusal::MalformedSni | Refusal::MalformedHello | Refusal::HelloTooLarge => DECODE_ERROR,
        Refusal::NotTls | Refusal::InterleavedRecord => UNEXPECTED_MESSAGE,
        Refusal::SslV2 => PROTOCOL_VERSION,
        Refusal::RecordOverflow => RECORD_OVERFLOW,
        Refusal::AddressDenied | Refusal::ClientNotLocal => ACCESS_DENIED,
        // The upstream or the router itself is the trouble. TLS has no alert for a server that cannot be reached.
        _ => INTERNAL_ERROR,
    }
}
