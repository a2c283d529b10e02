//! The ClientHello reader against hellos good and bad, cut in every way, and against a second reader.

// clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod captured;
mod hello;
mod refusals;
mod second_opinion;
mod splits;

use allowlist::Refusal;
use wire::tls::{ClientHello, HelloReader};

/// The verdict on bytes that arrive at once.
fn verdict(received: &[u8]) -> Result<Option<ClientHello>, Refusal> {
    HelloReader::new().advance(received)
}

/// The first verdict on bytes that arrive in segments which end at `ends`, and where it fell.
fn verdict_in_segments(
    received: &[u8],
    ends: impl IntoIterator<Item = usize>,
) -> (Result<Option<ClientHello>, Refusal>, usize) {
    let mut reader = HelloReader::new();
    for end in ends {
        let result = reader.advance(&received[..end]);
        if result != Ok(None) {
            return (result, end);
        }
    }
    (reader.advance(received), received.len())
}

/// The name in a hello that must be good.
fn name_of(received: &[u8]) -> String {
    verdict(received)
        .expect("refused")
        .expect("incomplete")
        .name
        .to_string()
}
