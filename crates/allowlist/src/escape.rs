//! Text from strangers, made safe for a terminal.

use std::fmt::Write as _;

/// `bytes` as text in which control characters, bidirectional controls and other invisible characters stand as
/// `\u{...}`, and bytes that are not UTF-8 as `\xNN`. A tab becomes a space, so that underlines stay aligned.
pub(crate) fn for_terminal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => text.push(' '),
                // Harmless, and escape_debug would put a backslash before them.
                '\\' | '\'' | '"' => text.push(c),
                // The standard library's table of what prints: no Cc, Cf, Co, Cn, Zl, Zp.
                c => text.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Whether `c` deceives the eye in a file that people review: it changes the order of what they see (Trojan Source,
/// CVE-2021-42574) or is not seen at all. The joiners U+200C and U+200D are left alone: scripts and emoji need them.
pub(crate) const fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        for (bytes, expected) in [
            (&b"a\x1b[31mb"[..], "a\\u{1b}[31mb"),
            (b"\0\x07\r\n", "\\0\\u{7}\\r\\n"),
            (b"\xc2\x9b31m", "\\u{9b}31m"),
            (b"\xff\xfea", "\\xff\\xfea"),
            ("x\u{202e}y\u{2066}".as_bytes(), "x\\u{202e}y\\u{2066}"),
            ("b\u{fc}cher\t\"'\\".as_bytes(), "b\u{fc}cher \"'\\"),
        ] {
            assert_eq!(for_terminal(bytes), expected);
        }
    }
}
