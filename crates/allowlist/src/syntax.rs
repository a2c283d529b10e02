//! The grammar of an entry.
//!
//! ```text
//! entry = host | "." host | host ":" port
//! ```

use std::num::NonZeroU16;

use crate::entry::{Rule, Target};
use crate::{HostName, NameError};

/// Reads an entry, without blanks around it. Why it fails is [`diagnose`](crate::diagnose)'s to say, which may guess;
/// nothing here does.
pub(crate) fn target(text: &str) -> Option<Target> {
    let (rule, rest) = match text.strip_prefix('.') {
        Some(rest) => (Rule::Suffix, rest),
        None => (Rule::Exact, text),
    };
    let (host, port) = match (rule, rest.split_once(':')) {
        (_, None) => (rest, None),
        (Rule::Exact, Some((host, digits))) => (host, Some(port(digits).ok()?)),
        (Rule::Suffix, Some(_)) => return None,
    };
    let name = HostName::from_user(host).ok()?;
    Some(Target { name, rule, port })
}

/// Why text is not a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortError {
    NotANumber,
    LeadingZero,
    OutOfRange,
}

/// Reads a port as everybody writes it: 1 to 65535 in decimal, without sign or leading zero (which some programs read
/// as octal).
pub(crate) fn port(digits: &str) -> Result<NonZeroU16, PortError> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(PortError::NotANumber);
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(PortError::LeadingZero);
    }
    digits.parse().map_err(|_| PortError::OutOfRange)
}

/// Whether `host` is an IP address in some spelling, in brackets or not, with a zone or a prefix length or not.
pub(crate) fn is_ip_literal(host: &str) -> bool {
    let host = host.split(['/', '%']).next().unwrap_or(host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<std::net::Ipv6Addr>().is_ok()
        || (!host.contains(':') && HostName::from_user(host) == Err(NameError::IpLiteral))
}
