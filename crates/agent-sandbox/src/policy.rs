//! The allowlist of a session: created on the first run, read and judged before anything starts.

use std::io;
use std::path::{Path, PathBuf};

use allowlist::Allowlist;

use crate::files::{Unreadable, create_whole, read_regular};
use crate::paths::resolve;

/// Used when no default is packaged beside the program or below /usr/share.
const BUILT_IN: &[u8] = include_bytes!("../../../allowed-hosts");

/// A policy that may be used: its bytes, which the router gets, were read without a fault.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) bytes: Vec<u8>,
    /// How many lines deserve a look (`as-router --check` shows them).
    pub(crate) warnings: usize,
}

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadPolicy {
    #[error(
        "cannot create the allowlist {}: {source}; create it yourself, or name another file in $AGENT_SANDBOX_ALLOWLIST",
        .file.display()
    )]
    Create { file: PathBuf, source: io::Error },
    #[error("cannot read the allowlist {}: {source}", .file.display())]
    Read { file: PathBuf, source: Unreadable },
    #[error("{drawn}the allowlist {} has faults, so no session starts; mend the lines above", .file.display())]
    Faults { file: PathBuf, drawn: String },
}

/// Creates `file` from the packaged default unless it exists. Returns whether it was created.
///
/// Must come after the check of the launch directory, which makes sure that `file` is not in it.
///
/// # Errors
/// What keeps the file from being created.
pub(crate) fn ensure(file: &Path, launch_dir: &Path) -> Result<bool, BadPolicy> {
    if file.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let default = packaged_default(launch_dir).unwrap_or_else(|| BUILT_IN.to_vec());
    create_whole(file, &default).map_err(|source| BadPolicy::Create {
        file: file.to_path_buf(),
        source,
    })
}

/// The default beside the program, else the system's. One in the launch directory could have been put there from a
/// sandbox, and is no default.
fn packaged_default(launch_dir: &Path) -> Option<Vec<u8>> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|program| Some(program.parent()?.join("allowed-hosts")));
    let candidates = beside
        .into_iter()
        .chain([PathBuf::from("/usr/share/agent-sandbox/allowed-hosts")]);
    candidates
        .filter(|path| {
            let found = resolve(path, Path::new("/"));
            !found.path.starts_with(launch_dir) && !found.links.iter().any(|link| link.starts_with(launch_dir))
        })
        .find_map(|path| read_regular(&path, MAX_BYTES).ok())
}

const MAX_BYTES: u64 = Allowlist::MAX_FILE_LEN as u64;

/// Reads and judges the allowlist.
///
/// # Errors
/// A file that cannot be read, or its faults, drawn as `as-router --check` draws them.
pub(crate) fn read(file: &Path, colour: bool) -> Result<Policy, BadPolicy> {
    let bytes = read_regular(file, MAX_BYTES).map_err(|source| BadPolicy::Read {
        file: file.to_path_buf(),
        source,
    })?;
    let parsed = Allowlist::parse(&bytes, &file.to_string_lossy());
    let warnings = parsed.warnings.total();
    match parsed.result {
        Ok(_) => Ok(Policy { bytes, warnings }),
        Err(faults) => Err(BadPolicy::Faults {
            file: file.to_path_buf(),
            drawn: faults.render(colour),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_default_is_valid_and_has_no_warning() {
        let parsed = Allowlist::parse(BUILT_IN, "allowed-hosts");
        assert!(parsed.result.is_ok());
        assert_eq!(parsed.warnings.render(false), "");
    }

    #[test]
    fn a_missing_file_is_created_from_the_default_and_an_existing_one_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config/agent-sandbox/allowed-hosts");
        assert!(ensure(&file, Path::new("/nowhere")).unwrap());
        assert!(!read(&file, false).unwrap().bytes.is_empty());
        std::fs::write(&file, "only.example\n").unwrap();
        assert!(!ensure(&file, Path::new("/nowhere")).unwrap());
        assert_eq!(read(&file, false).unwrap().bytes, b"only.example\n");
    }

    #[test]
    fn a_dangling_link_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (file, elsewhere) = (dir.path().join("allowed-hosts"), dir.path().join("elsewhere"));
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        assert!(!ensure(&file, Path::new("/nowhere")).unwrap());
        assert!(!elsewhere.exists());
        assert!(matches!(read(&file, false), Err(BadPolicy::Read { .. })));
    }

    #[test]
    fn faults_refuse_the_launch_and_all_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("allowed-hosts");
        std::fs::write(&file, "good.example\nhttps://bad.example\n*.worse.example\n").unwrap();
        let text = read(&file, false).unwrap_err().to_string();
        assert!(text.contains("https://") && text.contains("*.worse.example"), "{text}");
        assert!(text.ends_with("mend the lines above"), "{text}");
    }

    #[test]
    fn a_config_directory_that_cannot_be_written_is_named() {
        // A file where a directory is needed fails for root too.
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config"), "").unwrap();
        let error = ensure(&dir.path().join("config/allowed-hosts"), Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("cannot create the allowlist"), "{error}");
    }
}
