//! Parsers of what strangers send: bytes in, verdicts out. No sockets, no clock.

pub mod http;
