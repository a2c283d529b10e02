//! What is wrong with an allowlist, as data.

use std::ops::Range;

use crate::escape;

/// A fault or a warning.
///
/// Every text is safe to print: what comes from the file has control and bidirectional characters escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What kind of fault or warning it is.
    pub code: Code,
    /// The line of the file, from 1. 1 too for what concerns the whole file.
    pub line: u32,
    /// The character of the line at which `text` starts, from 1.
    pub column: u32,
    /// The offending text, or its beginning. Empty for what concerns the whole file.
    pub text: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead, and why.
    pub help: String,
    /// The line as it should be, where that can be known.
    pub fix: Option<String>,
    pub(crate) excerpt: Excerpt,
}

/// The part of a line that is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) line: String,
    /// The offending text, in bytes of `line`.
    pub(crate) span: Range<usize>,
}

/// A diagnostic before the line it concerns is looked up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    /// The offending text, in bytes of the line.
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: String,
    pub(crate) fix: Option<String>,
}

/// Most characters of a line that are drawn before the offending text, of it, and after it: a screen line.
const DRAWN_BEFORE: usize = 30;
const DRAWN_TEXT: usize = 70;
const DRAWN_AFTER: usize = 30;

impl Finding {
    pub(crate) fn new(code: Code, range: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            code,
            range,
            message: message.into(),
            help: help.into(),
            fix: None,
        }
    }

    /// The diagnostic of this finding in a line. The line may be long and need not be text.
    pub(crate) fn at(self, number: u32, line: &[u8]) -> Diagnostic {
        let start = self.range.start.min(line.len());
        let (before, rest) = line.split_at(start);
        let (text, after) = rest.split_at(self.range.end.saturating_sub(start).min(rest.len()));
        let drawn_before = last_chars(before, DRAWN_BEFORE);
        let drawn_text = first_chars(text, DRAWN_TEXT);
        let text_drawn = clipped("", drawn_text, text.len());
        let mut drawn = String::new();
        if drawn_before.len() < before.len() {
            drawn.push('…');
        }
        drawn.push_str(&escape::for_terminal(drawn_before));
        let span_start = drawn.len();
        drawn.push_str(&text_drawn);
        let span = span_start..drawn.len();
        if drawn_text.len() == text.len() {
            drawn.push_str(&clipped("", first_chars(after, DRAWN_AFTER), after.len()));
        }
        Diagnostic {
            code: self.code,
            line: number,
            column: column(before),
            text: text_drawn,
            message: self.message,
            help: self.help,
            fix: self.fix,
            excerpt: Excerpt { line: drawn, span },
        }
    }

    /// The diagnostic of what concerns the whole file.
    pub(crate) fn of_file(self) -> Diagnostic {
        self.at(1, b"")
    }
}

fn clipped(prefix: &str, drawn: &[u8], whole: usize) -> String {
    let mut text = String::from(prefix);
    text.push_str(&escape::for_terminal(drawn));
    if drawn.len() < whole {
        text.push('…');
    }
    text
}

/// A byte that does not continue a UTF-8 sequence starts a character.
const fn starts_char(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn column(before: &[u8]) -> u32 {
    let chars = before.iter().filter(|&&byte| starts_char(byte)).count();
    u32::try_from(chars).unwrap_or(u32::MAX).saturating_add(1)
}

fn first_chars(bytes: &[u8], count: usize) -> &[u8] {
    let end = bytes
        .iter()
        .enumerate()
        .filter(|&(_, &byte)| starts_char(byte))
        .nth(count);
    // Stray continuation bytes are no characters, yet are drawn: bound them too.
    let end = end.map_or(bytes.len(), |(at, _)| at).min(4 * count);
    bytes.get(..end).unwrap_or(bytes)
}

fn last_chars(bytes: &[u8], count: usize) -> &[u8] {
    let start = bytes
        .iter()
        .enumerate()
        .rev()
        .filter(|&(_, &byte)| starts_char(byte))
        .nth(count.saturating_sub(1));
    let start = start.map_or(0, |(at, _)| at).max(bytes.len().saturating_sub(4 * count));
    bytes.get(start..).unwrap_or(bytes)
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $severity:ident $name:ident = $code:literal,)+) => {
        /// The kind of a diagnostic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The stable code, for programs.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// Whether the file is refused, or accepted with a warning.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }
        }
    };
}

/// What a diagnostic does to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The file is refused.
    Fault,
    /// The file is accepted.
    Warning,
}

codes! {
    // --- the file
    /// The file is larger than [`Allowlist::MAX_FILE_LEN`](crate::Allowlist::MAX_FILE_LEN).
    Fault FileTooLarge = "file-too-large",
    /// The file is UTF-16.
    Fault Utf16 = "utf-16",
    // --- the line
    /// A byte that is not UTF-8.
    Fault NotUtf8 = "not-utf-8",
    /// A control character, a lone CR and NUL among them.
    Fault ControlCharacter = "control-character",
    /// An invisible or text-reversing character.
    Fault HiddenCharacter = "hidden-character",
    /// More text than any entry has.
    Fault EntryTooLong = "entry-too-long",
    /// More than one word on the line.
    Fault ExtraText = "extra-text",
    // --- the entry
    /// A URL scheme before the name.
    Fault Scheme = "scheme",
    /// A user before the name.
    Fault Userinfo = "userinfo",
    /// A path or a query behind the name.
    Fault Path = "path",
    /// An asterisk.
    Fault Wildcard = "wildcard",
    /// An IP address, an address range, or a name that is read as an address.
    Fault IpLiteral = "ip-literal",
    /// A port outside 1 to 65535, or no port number.
    Fault InvalidPort = "invalid-port",
    /// A colon without a port.
    Fault MissingPort = "missing-port",
    /// Several ports.
    Fault PortRange = "port-range",
    /// A port on a suffix.
    Fault SuffixPort = "suffix-port",
    // --- the name
    /// A dot too many, or no name at all.
    Fault EmptyLabel = "empty-label",
    /// A label of more than 63 bytes.
    Fault LabelTooLong = "label-too-long",
    /// A name of more than 253 bytes.
    Fault NameTooLong = "name-too-long",
    /// A character that host names cannot have.
    Fault BadCharacter = "bad-character",
    /// A hyphen at the edge of a label.
    Fault HyphenAtEdge = "hyphen-at-edge",
    /// Not a valid internationalised name.
    Fault NotUts46 = "not-uts-46",
    // --- warnings
    /// The same entry again.
    Warning Duplicate = "duplicate",
    /// Another entry allows the same and more.
    Warning Covered = "covered",
    /// A suffix under which anyone can register a name.
    Warning PublicSuffix = "public-suffix",
    /// A suffix under which a hosting company gives names to its customers.
    Warning SharedHosting = "shared-hosting",
    /// Port 22.
    Warning Ssh = "ssh",
    /// Nothing is allowed.
    Warning EmptyList = "empty-list",
}
