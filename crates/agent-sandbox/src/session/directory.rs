//! A session's directory on the host: the socket of its podman service, and what the router reads.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::owner::Owner;

/// What every session's name, and so its directory, begins with.
pub(crate) const PREFIX: &str = "agent-sandbox-";

/// A directory of mode 0700, never mounted into a container. Only its `router` subdirectory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionDir {
    path: PathBuf,
    name: String,
}

impl SessionDir {
    /// Creates the directory of a new session of this process.
    ///
    /// # Errors
    /// What keeps it from being created.
    pub(crate) fn create(runtime_dir: &Path, owner: &Owner) -> io::Result<Self> {
        // The process id tells people; the random part makes it a name that nobody can have prepared.
        let mut random = [0u8; 4];
        io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random)?;
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), u32::from_be_bytes(random));
        let path = runtime_dir.join(&name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        let dir = Self { path, name };
        std::fs::write(dir.owner_file(), owner.to_text())?;
        Ok(dir)
    }

    /// The directory of an existing session.
    pub(crate) fn existing(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_owned();
        name.starts_with(PREFIX).then_some(Self { path, name })
    }

    /// The session's name, which is also that of its pod and network.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The socket of the session's podman service.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("api.sock")
    }

    /// What the podman service says about itself.
    pub(crate) fn service_log(&self) -> PathBuf {
        self.path.join("service.log")
    }

    /// Which process the podman service is.
    pub(crate) fn service_file(&self) -> PathBuf {
        self.path.join("service")
    }

    /// Which process the session belongs to.
    pub(crate) fn owner_file(&self) -> PathBuf {
        self.path.join("owner")
    }

    /// Writes what the router reads and returns the directory to mount. Router and forwarder run under other ids, so
    /// it is readable for all; the parent keeps everybody else out.
    pub(crate) fn write_policy(&self, policy: &[u8]) -> io::Result<PathBuf> {
        let dir = self.path.join("router");
        std::fs::DirBuilder::new().mode(0o755).create(&dir)?;
        let file = dir.join("allowed-hosts");
        std::fs::write(&file, policy)?;
        // Whatever the umask is.
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755))?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
        Ok(dir)
    }

    /// Removes the directory. One that is not there is removed.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Where sessions keep their directories: `$XDG_RUNTIME_DIR`, else the place systemd would give it.
///
/// # Errors
/// What to do when there is neither.
pub(crate) fn runtime_dir(from_environment: Option<&Path>) -> Result<PathBuf, NoRuntimeDir> {
    let uid = rustix::process::getuid().as_raw();
    let path = from_environment.map_or_else(|| PathBuf::from(format!("/run/user/{uid}")), Path::to_path_buf);
    let meta = std::fs::metadata(&path).map_err(|source| NoRuntimeDir::Missing {
        path: path.clone(),
        source,
    })?;
    if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o022 != 0 {
        return Err(NoRuntimeDir::NotPrivate(path));
    }
    // sun_path holds 108 bytes with the final NUL (unix(7)); the longest name below is that of the socket.
    const MAX_SOCKET_PATH: usize = 107;
    let longest = path.as_os_str().len() + format!("/{PREFIX}4194304-00000000/api.sock").len();
    if longest > MAX_SOCKET_PATH {
        return Err(NoRuntimeDir::TooLong(path));
    }
    Ok(path)
}

/// A runtime directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRuntimeDir {
    #[error(
        "the runtime directory {} cannot be used: {source}; set $XDG_RUNTIME_DIR to a directory of yours with mode 0700",
        .path.display()
    )]
    Missing { path: PathBuf, source: io::Error },
    #[error(
        "the runtime directory {} is not yours alone; set $XDG_RUNTIME_DIR to a directory of yours with mode 0700",
        .0.display()
    )]
    NotPrivate(PathBuf),
    #[error("the path of the runtime directory {} is too long for a socket in it; set $XDG_RUNTIME_DIR to a shorter one", .0.display())]
    TooLong(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_outside_and_readable_inside() {
        let base = tempfile::tempdir().unwrap();
        let owner = Owner::this_process().unwrap();
        let dir = SessionDir::create(base.path(), &owner).unwrap();
        let other = SessionDir::create(base.path(), &owner).unwrap();
        assert_ne!(dir, other);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(dir.path()), 0o700);
        let router = dir.write_policy(b"a.example\n").unwrap();
        assert_eq!((mode(&router), mode(&router.join("allowed-hosts"))), (0o755, 0o644));
        assert_eq!(SessionDir::existing(dir.path().to_path_buf()), Some(dir.clone()));
        dir.remove().unwrap();
        dir.remove().unwrap();
        assert!(!dir.path().exists());
    }

    #[test]
    fn a_runtime_directory_is_short_and_ones_own() {
        let base = tempfile::tempdir().unwrap();
        let set = |mode| std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o700);
        assert!(runtime_dir(Some(base.path())).is_ok());
        set(0o777);
        assert!(matches!(
            runtime_dir(Some(base.path())),
            Err(NoRuntimeDir::NotPrivate(_))
        ));
        set(0o700);
        let long = base.path().join("x".repeat(80));
        std::fs::create_dir(&long).unwrap();
        assert!(matches!(runtime_dir(Some(&long)), Err(NoRuntimeDir::TooLong(_))));
        assert!(matches!(
            runtime_dir(Some(&base.path().join("no"))),
            Err(NoRuntimeDir::Missing { .. })
        ));
    }
}
