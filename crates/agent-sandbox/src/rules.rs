//! From which directories a session may start.
//!
//! The launch directory is handed to the sandbox read-write, so whatever is in it may be rewritten. The rules keep out
//! every place whose contents decide what happens on the host later: programs, keys, configuration, the policy itself.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::paths::{Identity, Place, Resolved, resolve};

/// A directory that passed every rule: resolved, and known by identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchDir {
    path: String,
    identity: Option<Identity>,
}

impl LaunchDir {
    /// The resolved path, which is also where the directory is mounted.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether the path still leads, without any link, to the directory that was checked.
    pub(crate) fn is_unchanged(&self) -> bool {
        let path = Path::new(&self.path);
        resolve(path, Path::new("/")).path == path && Identity::of(path) == self.identity
    }
}

/// A directory nobody may launch from, with the rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refusing to launch from {}: {rule}", .directory.display())]
pub(crate) struct RefusedDirectory {
    pub(crate) directory: PathBuf,
    pub(crate) rule: Rule,
}

/// The rules, each with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rule {
    #[error("podman cannot mount a path with a ':' in it; rename the directory")]
    Colon,
    #[error("podman's API cannot carry a path that is not UTF-8; rename the directory")]
    NotUtf8,
    #[error("it is your home directory or contains it; change to a project directory below it")]
    Home,
    #[error(
        "it lies in or contains {}, where the system keeps its own files; change to a project directory",
        .0.display()
    )]
    SystemPlace(PathBuf),
    #[error(
        "it is, contains or lies in {}, which holds keys, settings or running state; change to a project directory",
        .0.display()
    )]
    PrivatePlace(PathBuf),
    #[error("it is the dot-directory {} of your home; list a directory inside it in {} instead", .0.display(), .1.display())]
    DotDirectoryItself(PathBuf, PathBuf),
    #[error("it lies in the dot-directory {} of your home; to trust it, list it or a parent in {}", .0.display(), .1.display())]
    DotDirectory(PathBuf, PathBuf),
    #[error(
        "it contains the configuration {}, so the sandbox could rewrite its own policy; \
         keep the configuration outside of what you launch from",
        .0.display()
    )]
    Configuration(PathBuf),
    #[error(
        "your $PATH entry {entry} is in it ({}), so the sandbox could replace programs you run; \
         change to another directory or take the entry out of $PATH",
        .place.display()
    )]
    PathEntry { entry: String, place: PathBuf },
    #[error(
        "your $PATH has an empty entry, which means the current directory, so the sandbox could replace programs you \
         run; take the empty entry out of $PATH"
    )]
    EmptyPathEntry,
    #[error("it is not strictly under an allowed path ({allowed}); change to a directory under one{hint}")]
    OutsideRoots { allowed: String, hint: String },
}

/// Everything around a launch directory that the rules speak about.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// `$HOME`.
    pub(crate) home: PathBuf,
    /// Places that are, hold or lie in nothing a sandbox may see: keys, settings, sockets, podman's storage.
    pub(crate) private: Vec<PathBuf>,
    /// Places under which nothing may be launched.
    pub(crate) system: Vec<PathBuf>,
    /// Directories and files that configure agent-sandbox itself.
    pub(crate) configuration: Vec<PathBuf>,
    /// `$PATH`.
    pub(crate) search_path: OsString,
    /// The roots of the `allowed-paths` file, or `None` without the file.
    pub(crate) roots: Option<Vec<PathBuf>>,
    /// The `allowed-paths` file, which messages point to.
    pub(crate) allowed_paths_file: PathBuf,
}

/// Where the system keeps what is not a project: sockets and devices, and directories that others can write to.
pub(crate) const SYSTEM_PLACES: [&str; 6] = ["/run", "/tmp", "/var/tmp", "/proc", "/sys", "/dev"];

/// Checks `cwd`, an absolute path, against every rule.
///
/// # Errors
/// The first rule it breaks, the gravest first.
pub(crate) fn check(cwd: &Path, around: &Surroundings) -> Result<LaunchDir, RefusedDirectory> {
    let dir = Place::new(resolve(cwd, Path::new("/")).path);
    let refuse = |rule| RefusedDirectory {
        directory: dir.path().to_path_buf(),
        rule,
    };
    broken_rule(&dir, cwd, around).map_or(Ok(()), |rule| Err(refuse(rule)))?;
    let path = dir.path().to_str().ok_or_else(|| refuse(Rule::NotUtf8))?.to_owned();
    let identity = Identity::of(dir.path());
    Ok(LaunchDir { path, identity })
}

fn broken_rule(dir: &Place, cwd: &Path, around: &Surroundings) -> Option<Rule> {
    if dir.path().as_os_str().as_bytes().contains(&b':') {
        return Some(Rule::Colon);
    }
    let at = |path: &Path| resolve(path, cwd);
    let home = at(&around.home);
    if reaches(dir, &home) {
        return Some(Rule::Home);
    }
    let home = Place::new(home.path);
    system_place(dir, cwd, around)
        .or_else(|| private_place(dir, cwd, around))
        .or_else(|| dot_directory(dir, &home, cwd, around))
        .or_else(|| {
            let found = around.configuration.iter().find(|path| reaches(dir, &at(path)));
            found.cloned().map(Rule::Configuration)
        })
        .or_else(|| path_entry(dir, cwd, &around.search_path))
        .or_else(|| outside_roots(dir, &home, cwd, around))
}

/// Whether `dir` is or contains the place that was resolved, or a link on the way to it.
fn reaches(dir: &Place, place: &Resolved) -> bool {
    dir.holds(&Place::new(place.path.clone())) || place.links.iter().any(|link| dir.holds(&Place::new(link.clone())))
}

fn system_place(dir: &Place, cwd: &Path, around: &Surroundings) -> Option<Rule> {
    let found = around.system.iter().find(|place| touches(dir, &resolve(place, cwd)));
    found.cloned().map(Rule::SystemPlace)
}

fn private_place(dir: &Place, cwd: &Path, around: &Surroundings) -> Option<Rule> {
    let found = around.private.iter().find(|place| touches(dir, &resolve(place, cwd)));
    found.cloned().map(Rule::PrivatePlace)
}

/// Whether `dir` is, contains or lies in the place.
fn touches(dir: &Place, place: &Resolved) -> bool {
    reaches(dir, place) || Place::new(place.path.clone()).holds(dir)
}

/// A top-level dot-directory of the home is refused itself; what lies in it needs a root of its own there.
fn dot_directory(dir: &Place, home: &Place, cwd: &Path, around: &Surroundings) -> Option<Rule> {
    let is_dot = |path: &&Path| {
        let hidden = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
        hidden
            && path
                .parent()
                .is_some_and(|parent| same(&Place::new(parent.to_path_buf()), home))
    };
    let dot = Place::new(dir.path().ancestors().find(is_dot)?.to_path_buf());
    let list = around.allowed_paths_file.clone();
    if same(dir, &dot) {
        return Some(Rule::DotDirectoryItself(dot.path().to_path_buf(), list));
    }
    let mut roots = around
        .roots
        .iter()
        .flatten()
        .map(|root| Place::new(resolve(root, cwd).path));
    let trusted = roots.any(|root| dot.holds(&root) && root.holds_strictly(dir));
    (!trusted).then(|| Rule::DotDirectory(dot.path().to_path_buf(), list))
}

fn same(one: &Place, other: &Place) -> bool {
    one.holds(other) && other.holds(one)
}

/// POSIX (XBD 8.3): entries are separated by colons, and an empty one is the current directory. Entries that do not
/// exist count: the sandbox could create them.
fn path_entry(dir: &Place, cwd: &Path, search_path: &OsString) -> Option<Rule> {
    search_path.as_bytes().split(|&b| b == b':').find_map(|entry| {
        if entry.is_empty() {
            // An unset $PATH has no entries at all; execvp(3) then uses the system's own default.
            return (!search_path.is_empty()).then_some(Rule::EmptyPathEntry);
        }
        let place = resolve(Path::new(std::ffi::OsStr::from_bytes(entry)), cwd);
        reaches(dir, &place).then(|| Rule::PathEntry {
            entry: String::from_utf8_lossy(entry).into_owned(),
            place: place.path,
        })
    })
}

fn outside_roots(dir: &Place, home: &Place, cwd: &Path, around: &Surroundings) -> Option<Rule> {
    let list = around.allowed_paths_file.display();
    let Some(roots) = &around.roots else {
        return (!home.holds_strictly(dir)).then(|| Rule::OutsideRoots {
            allowed: home.path().display().to_string(),
            hint: format!(", or list other roots in {list}"),
        });
    };
    let allowed = roots
        .iter()
        .any(|root| Place::new(resolve(root, cwd).path).holds_strictly(dir));
    (!allowed).then(|| Rule::OutsideRoots {
        allowed: match roots.as_slice() {
            [] => format!("{list} lists none"),
            roots => roots
                .iter()
                .map(|root| root.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
        },
        hint: format!(", or add one to {list}"),
    })
}

#[cfg(test)]
mod tests;
