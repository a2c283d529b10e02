//! An entry: what one line of the allowlist means.

use std::fmt;
use std::num::NonZeroU16;

use crate::HostName;

/// What a line of the allowlist means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) target: Target,
    pub(crate) line: u32,
}

/// An entry without its place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: HostName,
    pub(crate) rule: Rule,
    pub(crate) port: Option<NonZeroU16>,
}

/// Which names an entry covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The name alone.
    Exact,
    /// The name and every name below it.
    Suffix,
}

impl Entry {
    /// The name, without the dot that marks a suffix.
    #[must_use]
    pub const fn name(&self) -> &HostName {
        &self.target.name
    }

    /// Which names the entry covers.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        self.target.rule
    }

    /// The port of a raw TCP forward. Only an exact entry has one, and allows ports 80 and 443 too.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.target.port.map(NonZeroU16::get)
    }

    /// The line of the file, from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }
}

/// As it stands in a file: `host`, `.suffix` or `host:port`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rule == Rule::Suffix {
            f.write_str(".")?;
        }
        self.name.fmt(f)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}
