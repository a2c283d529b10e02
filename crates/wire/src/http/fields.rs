//! What the fields of a head have in common in both directions.

use httparse::Header;

/// Largest body or chunk: what fits a signed 64-bit integer, in which many servers count.
pub(super) const MAX_LENGTH: u64 = i64::MAX as u64;

/// Reads a Content-Length: digits only, no leading zero (some readers take that for octal), at most [`MAX_LENGTH`].
pub(super) fn read_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || (value.len() > 1 && value.first() == Some(&b'0')) {
        return None;
    }
    value
        .iter()
        .try_fold(0_u64, |length, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            length.checked_mul(10)?.checked_add(digit)
        })
        .filter(|&length| length <= MAX_LENGTH)
}

/// The value with all its white space but leading spaces. A field that decides on host or length must not end in
/// white space or have a tab in it: RFC 9112 section 5 has that ignored, not every server does.
pub(super) fn untrimmed_value<'a>(head: &'a [u8], field: &Header<'a>) -> &'a [u8] {
    let name_end = field.name.as_ptr().addr() + field.name.len();
    let line = name_end
        .checked_sub(head.as_ptr().addr())
        .and_then(|start| head.get(start..))
        .unwrap_or_default();
    let value = line
        .split(|&b| b == b'\r')
        .next()
        .and_then(|line| line.strip_prefix(b":"))
        .unwrap_or_default();
    let spaces = value.iter().take_while(|&&b| b == b' ').count();
    value.get(spaces..).unwrap_or_default()
}

/// The elements of a list (RFC 9110 section 5.6.1) without the white space around them. May be empty.
pub(super) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii)
}

/// What the Connection fields say (RFC 9110 section 7.6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Connection {
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
}

impl Connection {
    /// Takes in one element of a Connection field.
    pub(super) fn add(&mut self, option: &[u8]) {
        self.close |= option.eq_ignore_ascii_case(b"close");
        self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        self.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
    }

    /// Whether the connection ends after this message (RFC 9112 section 9.3).
    pub(super) const fn ends(self, version: Version) -> bool {
        self.close || (matches!(version, Version::Http10) && !self.keep_alive)
    }
}

/// Sets what a field may say once. `None` if it was set before.
pub(super) fn set_once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http10,
    Http11,
}

impl Version {
    pub(super) const fn from_minor(minor: Option<u8>) -> Option<Self> {
        match minor {
            Some(0) => Some(Self::Http10),
            Some(1) => Some(Self::Http11),
            _ => None,
        }
    }
}

/// Fields that decide on host or length: they can be neither hop-by-hop nor trailers (RFC 9110 section 6.5.1).
pub(super) fn is_decisive(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 3] = [b"host", b"content-length", b"transfer-encoding"];
    NAMES.iter().any(|known| same_name(name, known))
}

/// Whether a field name is `known` (lower case), for an upstream that follows CGI (RFC 3875 section 4.1.18) too:
/// there `Content_Length` and `Content-Length` become the same variable.
pub(super) fn same_name(name: &[u8], known: &[u8]) -> bool {
    name.len() == known.len()
        && name
            .iter()
            .zip(known)
            .all(|(&b, &k)| b.to_ascii_lowercase() == k || (b == b'_' && k == b'-'))
}
