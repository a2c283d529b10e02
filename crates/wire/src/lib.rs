//! Parsers of what strangers send: bytes in, verdicts out. No sockets, no clock.

pub mod dns;
pub mod http;
pub mod tls;
