//! The environment variables a session reads, looked up once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where variables come from: the process, or a table in tests.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variables, and what their absence means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    /// `$HOME`.
    pub(crate) home: PathBuf,
    /// `$XDG_CONFIG_HOME`, by default `~/.config`.
    pub(crate) config_home: PathBuf,
    /// `$XDG_DATA_HOME`, by default `~/.local/share`. Podman keeps its storage below it.
    pub(crate) data_home: PathBuf,
    /// `$XDG_RUNTIME_DIR`, if set.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// `$PATH`.
    pub(crate) search_path: OsString,
    /// `$AGENT_SANDBOX_IMAGE`.
    pub(crate) image: Option<String>,
    /// `$AGENT_SANDBOX_ROUTER_IMAGE`.
    pub(crate) router_image: Option<String>,
    /// `$AGENT_SANDBOX_ALLOWLIST`.
    pub(crate) allowlist: Option<PathBuf>,
    /// `$AGENT_SANDBOX_HOME_VOLUME`.
    pub(crate) home_volume: Option<String>,
    /// `$AGENT_SANDBOX_TRACE` is `1`.
    pub(crate) trace: bool,
}

/// A variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadVariable {
    #[error("$HOME is not set to an absolute path; set it to your home directory")]
    Home,
    #[error("${0} is not valid UTF-8; set it to the name of an image or volume, or unset it")]
    NotUtf8(&'static str),
}

impl Environment {
    /// Reads the variables. An empty one counts as unset, and so does a relative XDG directory (XDG Base Directory
    /// Specification 0.8: "all paths set in these environment variables must be absolute").
    ///
    /// # Errors
    /// A variable that is needed and cannot be used.
    pub(crate) fn read(lookup: Lookup<'_>) -> Result<Self, BadVariable> {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let absolute = |name: &str| set(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let text = |name: &'static str| {
            let read = |value: OsString| value.into_string().map_err(|_| BadVariable::NotUtf8(name));
            set(name).map(read).transpose()
        };
        let home = absolute("HOME").ok_or(BadVariable::Home)?;
        Ok(Self {
            config_home: absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            data_home: absolute("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share")),
            runtime_dir: absolute("XDG_RUNTIME_DIR"),
            search_path: lookup("PATH").unwrap_or_default(),
            image: text("AGENT_SANDBOX_IMAGE")?,
            router_image: text("AGENT_SANDBOX_ROUTER_IMAGE")?,
            allowlist: set("AGENT_SANDBOX_ALLOWLIST").map(PathBuf::from),
            home_volume: text("AGENT_SANDBOX_HOME_VOLUME")?,
            trace: set("AGENT_SANDBOX_TRACE").is_some_and(|value| value == "1"),
            home,
        })
    }

    /// The directory of agent-sandbox's own configuration.
    pub(crate) fn config_dir(&self) -> PathBuf {
        self.config_home.join("agent-sandbox")
    }

    /// The policy file. A relative `$AGENT_SANDBOX_ALLOWLIST` is taken from `cwd`.
    pub(crate) fn allowlist_file(&self, cwd: &Path) -> PathBuf {
        match &self.allowlist {
            Some(path) => cwd.join(path),
            None => self.config_dir().join("allowed-hosts"),
        }
    }

    /// The file that lists the roots one may launch from.
    pub(crate) fn allowed_paths_file(&self) -> PathBuf {
        self.config_dir().join("allowed-paths")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, BadVariable> {
        let table = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        };
        Environment::read(&table)
    }

    #[test]
    fn defaults_follow_the_home() {
        let env = read(&[("HOME", "/home/me")]).unwrap();
        assert_eq!(env.config_dir(), Path::new("/home/me/.config/agent-sandbox"));
        assert_eq!(
            env.allowlist_file(Path::new("/x")),
            Path::new("/home/me/.config/agent-sandbox/allowed-hosts")
        );
        assert_eq!(
            env.allowed_paths_file(),
            Path::new("/home/me/.config/agent-sandbox/allowed-paths")
        );
        assert_eq!(env.data_home, Path::new("/home/me/.local/share"));
        assert_eq!((env.runtime_dir, env.image, env.trace), (None, None, false));
    }

    #[test]
    fn xdg_directories_count_only_when_absolute() {
        let env = read(&[
            ("HOME", "/home/me"),
            ("XDG_CONFIG_HOME", "/etc/me"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_RUNTIME_DIR", ""),
        ])
        .unwrap();
        assert_eq!(env.config_dir(), Path::new("/etc/me/agent-sandbox"));
        assert_eq!(env.data_home, Path::new("/home/me/.local/share"));
        assert_eq!(env.runtime_dir, None);
    }

    #[test]
    fn the_four_overrides() {
        let env = read(&[
            ("HOME", "/home/me"),
            ("AGENT_SANDBOX_IMAGE", "localhost/mine:1"),
            ("AGENT_SANDBOX_ROUTER_IMAGE", "localhost/router:1"),
            ("AGENT_SANDBOX_ALLOWLIST", "policy/hosts"),
            ("AGENT_SANDBOX_HOME_VOLUME", "other-home"),
            ("AGENT_SANDBOX_TRACE", "1"),
        ])
        .unwrap();
        assert_eq!(env.image.as_deref(), Some("localhost/mine:1"));
        assert_eq!(env.router_image.as_deref(), Some("localhost/router:1"));
        assert_eq!(env.allowlist_file(Path::new("/srv")), Path::new("/srv/policy/hosts"));
        assert_eq!(env.home_volume.as_deref(), Some("other-home"));
        assert!(env.trace);
    }

    #[test]
    fn a_home_is_needed() {
        for variables in [&[][..], &[("HOME", "")], &[("HOME", "me")]] {
            assert_eq!(read(variables), Err(BadVariable::Home));
        }
    }
}
