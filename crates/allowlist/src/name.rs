//! The one type of host name: what is not a [`HostName`] does not get past the edge.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// A validated host name: lower-case ASCII A-labels, no trailing dot, 1 to 253 bytes, labels of 1 to 63 bytes made of
/// letters, digits, hyphens (not at a label's edge) and underscores, and never something a client could read as an IP
/// address.
///
/// The allowlist, DNS, SNI, the Host header and the resolver all use this type, so that two readers cannot disagree
/// about what a name is. A clone costs a reference count: list, plan, connections and events share the bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(Arc<str>);

impl HostName {
    /// Longest name in text form without the trailing dot (RFC 1035 section 3.1: 255 octets on the wire, of which one
    /// is the root label and one the first length octet).
    pub const MAX_LEN: usize = 253;

    /// Longest label (RFC 1035 section 2.3.4).
    pub const MAX_LABEL_LEN: usize = 63;

    /// Reads a name as it stands in a TLS or HTTP message or in a DNS question: ASCII only, any case, no trailing dot.
    ///
    /// # Errors
    /// The first rule that `bytes` breaks.
    pub fn from_wire(bytes: &[u8]) -> Result<Self, NameError> {
        if bytes.is_empty() {
            return Err(NameError::Empty);
        }
        if bytes.len() > 1 && bytes.last() == Some(&b'.') {
            return Err(NameError::TrailingDot);
        }
        if bytes.len() > Self::MAX_LEN {
            return Err(NameError::TooLong);
        }
        let mut last_label: &[u8] = &[];
        for label in bytes.split(|&b| b == b'.') {
            check_label(label)?;
            last_label = label;
        }
        if reads_as_number(last_label) {
            return Err(NameError::IpLiteral);
        }
        // Lower-cased on the stack: a name costs one allocation, which counts in a list of a million.
        let mut buffer = [0; Self::MAX_LEN];
        let name = buffer.get_mut(..bytes.len()).ok_or(NameError::TooLong)?;
        name.copy_from_slice(bytes);
        name.make_ascii_lowercase();
        let name = str::from_utf8(name).map_err(|_| NameError::BadCharacter)?;
        Ok(Self(name.into()))
    }

    /// Longest name from a person, in bytes of UTF-8: 253 characters of four bytes each. What is longer has no A-label
    /// form of [`Self::MAX_LEN`], and is not given to UTS 46, whose cost grows faster than the text.
    pub const MAX_USER_LEN: usize = 4 * Self::MAX_LEN;

    /// Reads a name as a person writes it in a file or on a command line: any case, internationalised names by UTS 46
    /// (non-transitional, as browsers do: the ideographic full stops separate labels too), one trailing dot.
    ///
    /// # Errors
    /// The first rule that `text` breaks.
    pub fn from_user(text: &str) -> Result<Self, NameError> {
        let without_dot = |ascii: &str| {
            let name = Self::from_wire(ascii.strip_suffix('.').unwrap_or(ascii).as_bytes());
            // One dot is allowed here, so what a second one leaves is an empty label.
            name.map_err(|error| {
                if error == NameError::TrailingDot {
                    NameError::EmptyLabel
                } else {
                    error
                }
            })
        };
        if text.is_ascii() && !has_a_label(text) {
            return without_dot(text);
        }
        if text.len() > Self::MAX_USER_LEN {
            return Err(NameError::TooLong);
        }
        // Characters, hyphens and lengths are from_wire's to judge: names in use have underscores, and hyphens in the
        // third and fourth place.
        let ascii = Uts46::new()
            .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
            .map_err(|_| NameError::NotUts46)?;
        // A fullwidth colon becomes a colon, which is no sign of an IPv6 address here.
        if ascii.contains(':') && !text.contains(':') {
            return Err(NameError::BadCharacter);
        }
        without_dot(&ascii)
    }

    /// The name in lower case without a trailing dot.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why bytes are not a [`HostName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// No bytes at all.
    #[error("the name is empty")]
    Empty,
    /// Two dots in a row, or a dot at the start.
    #[error("the name has an empty label")]
    EmptyLabel,
    /// A label of more than 63 bytes.
    #[error("a label is longer than 63 bytes")]
    LabelTooLong,
    /// More than 253 bytes.
    #[error("the name is longer than 253 bytes")]
    TooLong,
    /// A byte that is no letter, digit, hyphen or underscore.
    #[error("the name has a character that host names cannot have")]
    BadCharacter,
    /// A hyphen at the start or the end of a label.
    #[error("a label starts or ends with a hyphen")]
    HyphenAtEdge,
    /// The last label is a number, so that clients may read the name as an IP address.
    #[error("this is an IP address, or would be read as one")]
    IpLiteral,
    /// A dot at the end, where the protocol forbids it (RFC 6066 section 3).
    #[error("the name ends with a dot")]
    TrailingDot,
    /// Characters outside ASCII, or an `xn--` label, that UTS 46 does not allow.
    #[error("this is not a valid internationalised name (UTS 46)")]
    NotUts46,
}

/// Whether a label is in the punycode form, which UTS 46 validates.
fn has_a_label(name: &str) -> bool {
    name.split('.')
        .any(|label| label.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("xn--")))
}

fn check_label(label: &[u8]) -> Result<(), NameError> {
    if label.is_empty() {
        return Err(NameError::EmptyLabel);
    }
    if label.len() > HostName::MAX_LABEL_LEN {
        return Err(NameError::LabelTooLong);
    }
    if !label
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    {
        // An IPv6 literal shows itself by its colon, whatever else is wrong with it.
        let looks_like_ipv6 = label.contains(&b':');
        return Err(if looks_like_ipv6 {
            NameError::IpLiteral
        } else {
            NameError::BadCharacter
        });
    }
    if label.first() == Some(&b'-') || label.last() == Some(&b'-') {
        return Err(NameError::HyphenAtEdge);
    }
    Ok(())
}

/// WHATWG URL "ends in a number": `inet_aton` and browsers read such names as IPv4 addresses (`1`, `0x7f.1`, `1.2.3`).
fn reads_as_number(label: &[u8]) -> bool {
    if label.iter().all(u8::is_ascii_digit) {
        return true;
    }
    match label {
        [b'0', b'x' | b'X', rest @ ..] => rest.iter().all(u8::is_ascii_hexdigit),
        _ => false,
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Borrow<str> for HostName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for HostName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
