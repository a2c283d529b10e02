//! The file: lines in, entries and diagnostics out.

use std::ops::Range;

use crate::diagnostic::{Code, Finding};
use crate::{Allowlist, Diagnostics, Entry, HostName, diagnose, escape, syntax, warn};

/// What became of a file.
#[derive(Debug)]
pub struct Parsed {
    /// The list, or every fault of the file. A file with one fault allows nothing.
    pub result: Result<Allowlist, Diagnostics>,
    /// What is accepted but deserves a look.
    pub warnings: Diagnostics,
}

/// Longest entry: a name as a person may write it, a leading dot, a colon and a port.
const MAX_ENTRY_LEN: usize = HostName::MAX_USER_LEN + ".:65535".len();

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

impl Allowlist {
    /// Largest file that is read: over two million entries of common length. Also keeps every place in it within u32.
    pub const MAX_FILE_LEN: usize = 64 << 20;

    /// Reads an allowlist. `file` is its name for diagnostics.
    ///
    /// One pass over the bytes; memory is bounded by the entries and [`Diagnostics::KEPT`].
    #[must_use]
    pub fn parse(text: &[u8], file: &str) -> Parsed {
        let mut faults = Diagnostics::new(file);
        let mut entries = Vec::new();
        let text = text.strip_prefix(UTF8_BOM).unwrap_or(text);
        if let Some(fault) = whole_file(text) {
            faults.push(|| fault.of_file());
        } else {
            for (number, line) in lines(text) {
                match entry(line) {
                    Ok(None) => {}
                    Ok(Some(target)) => entries.push(Entry { target, line: number }),
                    Err(fault) => faults.push(|| fault.at(number, line)),
                }
            }
        }
        let mut list = Self::with_capacity_for(&entries);
        let mut duplicates = Vec::new();
        for entry in entries {
            if let Err((older, entry)) = list.insert(entry) {
                let older = older.line();
                duplicates.push((entry, older));
            }
        }
        let warnings = if faults.total() == 0 || !list.is_empty() {
            warn::warnings(&list, &duplicates, text, file)
        } else {
            Diagnostics::new(file)
        };
        let result = if faults.total() == 0 { Ok(list) } else { Err(faults) };
        Parsed { result, warnings }
    }
}

/// The lines with their numbers, without LF or CRLF.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let lines = text.split(|&b| b == b'\n');
    (1..).zip(lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)))
}

/// Where the entry of a line is: before a comment, without blanks. Empty on a line without an entry.
pub(crate) fn entry_range(line: &[u8]) -> Range<usize> {
    let end = line.iter().position(|&b| b == b'#').unwrap_or(line.len());
    let text = line.get(..end).unwrap_or_default();
    let is_text = |b: &u8| !matches!(b, b' ' | b'\t');
    match (text.iter().position(is_text), text.iter().rposition(is_text)) {
        (Some(first), Some(last)) => first..last + 1,
        _ => end..end,
    }
}

fn whole_file(text: &[u8]) -> Option<Finding> {
    if text.len() > Allowlist::MAX_FILE_LEN {
        let message = format!(
            "the file has {} bytes, more than the {} that are read",
            text.len(),
            Allowlist::MAX_FILE_LEN
        );
        let help = "is this the right file? One `.suffix` can stand for many hosts";
        return Some(Finding::new(Code::FileTooLarge, 0..0, message, help));
    }
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        let help = "save it as UTF-8";
        return Some(Finding::new(Code::Utf16, 0..0, "the file is UTF-16", help));
    }
    None
}

fn entry(line: &[u8]) -> Result<Option<crate::entry::Target>, Finding> {
    let range = entry_range(line);
    let comment = line.get(range.end..).unwrap_or_default();
    // The common case first: nothing but printable ASCII needs a look of its own.
    let is_plain = |bytes: &[u8]| bytes.iter().all(|b| matches!(b, b'\t' | 0x20..=0x7e));
    let written = line.get(range.clone()).unwrap_or_default();
    if !is_plain(written) || !is_plain(comment) {
        characters(line)?;
    }
    if written.is_empty() {
        return Ok(None);
    }
    if written.len() > MAX_ENTRY_LEN {
        let message = format!("{} bytes without a line end are no entry", written.len());
        let help = "a line holds one host name of at most 253 characters";
        return Err(Finding::new(Code::EntryTooLong, range, message, help));
    }
    // `characters` has seen to it that this is UTF-8.
    let written = str::from_utf8(written).unwrap_or_default();
    if let Some(target) = syntax::target(written) {
        return Ok(Some(target));
    }
    let mut fault = diagnose::entry(written);
    fault.range = range.start + fault.range.start..range.start + fault.range.end;
    Err(fault)
}

/// The first byte or character that no line may have, in a comment either: the file is shown on terminals and reviewed
/// by people.
fn characters(line: &[u8]) -> Result<(), Finding> {
    let text = str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        let len = error.error_len().unwrap_or(line.len() - at);
        let help = "save the file as UTF-8";
        Finding::new(Code::NotUtf8, at..at + len, "this is not UTF-8", help)
    })?;
    let bad = |c: char| (c.is_control() && c != '\t') || escape::is_deceptive(c);
    let Some((at, c)) = text.char_indices().find(|&(_, c)| bad(c)) else {
        return Ok(());
    };
    let range = at..at + c.len_utf8();
    let name = format!("U+{:04X}", u32::from(c));
    Err(match c {
        '\r' => Finding::new(
            Code::ControlCharacter,
            range,
            "a carriage return stands inside the line",
            "end lines with LF or CRLF",
        ),
        '\u{feff}' => Finding::new(
            Code::HiddenCharacter,
            range,
            "a byte order mark stands inside the file",
            "remove it: it belongs to the start of a file alone, and comes from joining files",
        ),
        c if c.is_control() => {
            let message = format!("{name} is a control character");
            Finding::new(Code::ControlCharacter, range, message, "remove it")
        }
        _ => {
            let message = format!("{name} is invisible, or changes the order of the text around it");
            Finding::new(
                Code::HiddenCharacter,
                range,
                message,
                "remove it, or type the line again",
            )
        }
    })
}
