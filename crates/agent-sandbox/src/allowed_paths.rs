//! The `allowed-paths` file: the roots one may launch from.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::files::{Unreadable, read_regular};
use crate::paths::expand_home;

/// Far more than anybody lists; a file beyond it is something else.
const MAX_BYTES: u64 = 1 << 20;

/// Why the roots are not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadAllowedPaths {
    #[error("cannot read {}: {source}", .file.display())]
    Read { file: PathBuf, source: Unreadable },
    #[error(
        "{}:{line}: {text:?} is not an absolute path and does not start with ~/; write the whole path",
        .file.display()
    )]
    NotAbsolute { file: PathBuf, line: usize, text: String },
}

/// Reads the roots from `file`; `None` if there is no such file.
///
/// # Errors
/// A file that cannot be read, or a line that is no absolute or `~/` path.
pub(crate) fn read(file: &Path, home: &Path) -> Result<Option<Vec<PathBuf>>, BadAllowedPaths> {
    match read_regular(file, MAX_BYTES) {
        Ok(bytes) => parse(&bytes, home)
            .map(Some)
            .map_err(|(line, text)| BadAllowedPaths::NotAbsolute {
                file: file.to_path_buf(),
                line,
                text,
            }),
        Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BadAllowedPaths::Read {
            file: file.to_path_buf(),
            source,
        }),
    }
}

/// One path a line. A `#` at the start of a line or after a blank starts a comment, since paths may contain one.
fn parse(bytes: &[u8], home: &Path) -> Result<Vec<PathBuf>, (usize, String)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut roots = Vec::new();
    for (index, line) in bytes.split(|&b| b == b'\n').enumerate() {
        let text = without_comment(line).trim_ascii();
        if text.is_empty() {
            continue;
        }
        let path = expand_home(OsStr::from_bytes(text), home);
        roots.push(path.ok_or_else(|| (index + 1, String::from_utf8_lossy(text).into_owned()))?);
    }
    Ok(roots)
}

fn without_comment(line: &[u8]) -> &[u8] {
    let mut after_blank = true;
    for (at, &byte) in line.iter().enumerate() {
        if byte == b'#' && after_blank {
            return line.get(..at).unwrap_or_default();
        }
        after_blank = byte.is_ascii_whitespace();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(text: &str) -> Result<Vec<PathBuf>, (usize, String)> {
        parse(text.as_bytes(), Path::new("/home/me"))
    }

    #[test]
    fn paths_comments_and_line_ends() {
        let text =
            "\u{feff}# mine\r\n~/.local/src\r\n\r\n  /srv/work  # shared\n~\n/srv/c#\n   # only a comment\n/last";
        let want = ["/home/me/.local/src", "/srv/work", "/home/me", "/srv/c#", "/last"];
        assert_eq!(roots(text).unwrap(), want.map(PathBuf::from));
        assert_eq!(roots("").unwrap(), Vec::<PathBuf>::new());
        assert_eq!(roots("/a b/c").unwrap(), [PathBuf::from("/a b/c")]);
    }

    #[test]
    fn other_spellings_are_refused_with_their_line() {
        for (text, line) in [("src", 1), ("/ok\n./src", 2), ("~you/src", 1), ("\n\n$HOME/src", 3)] {
            assert_eq!(roots(text).unwrap_err().0, line, "{text:?}");
        }
    }

    #[test]
    fn no_file_is_not_an_empty_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("allowed-paths");
        assert!(read(&file, Path::new("/home/me")).unwrap().is_none());
        std::fs::write(&file, "# nothing\n").unwrap();
        assert_eq!(read(&file, Path::new("/home/me")).unwrap(), Some(Vec::new()));
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        let text = read(&file, Path::new("/home/me")).unwrap_err().to_string();
        assert!(text.contains("not a regular file"), "{text}");
    }
}
