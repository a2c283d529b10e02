//! Files of ours on the host: read only when they are plain files, created whole or not at all.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, renameat_with, unlinkat};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
}

/// Reads a whole regular file of at most `max` bytes. A pipe or a device is not waited for.
///
/// # Errors
/// What keeps the file from being read.
pub(crate) fn read_regular(path: &Path, max: u64) -> Result<Vec<u8>, Unreadable> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
    if !file.metadata()?.is_file() {
        return Err(Unreadable::NotRegular);
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max {
        return Err(Unreadable::TooLarge(max));
    }
    Ok(bytes)
}

/// Creates `path` with `bytes`, and its parent directories, unless something is there already (then `false`).
///
/// The file appears under its name only once it is complete and on disk, and a link in its place is never followed.
///
/// # Errors
/// What keeps the file from being written.
pub(crate) fn create_whole(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"));
    };
    std::fs::create_dir_all(parent)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(parent, flags, Mode::empty())?;
    let temporary = format!(".{}.{}", name.to_string_lossy(), std::process::id());
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A process of the same id that died in this place left its half; nobody else uses the name.
    let _ = unlinkat(&dir, &temporary, AtFlags::empty());
    let mut file = File::from(rustix::fs::openat(
        &dir,
        &temporary,
        create,
        Mode::from_raw_mode(0o644),
    )?);
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat_with(&dir, &temporary, &dir, name, RenameFlags::NOREPLACE)?));
    if let Err(error) = written {
        let _ = unlinkat(&dir, &temporary, AtFlags::empty());
        return if error.kind() == io::ErrorKind::AlreadyExists {
            Ok(false)
        } else {
            Err(error)
        };
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_created_once_and_never_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/dir/file");
        assert!(create_whole(&path, b"one").unwrap());
        assert!(!create_whole(&path, b"two").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);

        let elsewhere = dir.path().join("elsewhere");
        let link = dir.path().join("link");
        symlink(&elsewhere, &link).unwrap();
        assert!(!create_whole(&link, b"x").unwrap());
        assert!(!elsewhere.exists());
    }

    #[test]
    fn only_regular_files_of_a_sane_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(read_regular(&file, 5).unwrap(), b"12345");
        assert!(matches!(read_regular(&file, 4), Err(Unreadable::TooLarge(4))));
        assert!(matches!(read_regular(dir.path(), 4), Err(Unreadable::NotRegular)));
        assert!(matches!(
            read_regular(Path::new("/dev/null"), 4),
            Err(Unreadable::NotRegular)
        ));
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(matches!(read_regular(&fifo, 4), Err(Unreadable::NotRegular)));
    }
}
