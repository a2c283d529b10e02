//! Path resolution as `realpath -m` does it: symlinks resolved, missing components allowed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most symlinks the kernel follows in one lookup (path_resolution(7)). What lies behind more of them cannot be
/// opened by anybody, so it is taken as written.
const MAX_LINKS: usize = 40;

/// A path with every symlink resolved, and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The resolved absolute path. Components that do not exist are kept as written.
    pub(crate) path: PathBuf,
    /// Where each symlink on the way lies. Whoever can write there decides where the path leads.
    pub(crate) links: Vec<PathBuf>,
}

/// Resolves `path`, taken relative to `cwd`. A `..` goes up from the resolved directory, not from the spelling.
pub(crate) fn resolve(path: &Path, cwd: &Path) -> Resolved {
    let mut resolved = PathBuf::from("/");
    let mut links = Vec::new();
    // Components still to walk, the next one last.
    let mut rest: Vec<OsString> = components_reversed(&cwd.join(path));
    while let Some(part) = rest.pop() {
        match part.as_bytes() {
            b"" | b"." => continue,
            b".." => {
                resolved.pop();
                continue;
            }
            _ => {}
        }
        let next = resolved.join(&part);
        let target = if links.len() < MAX_LINKS {
            std::fs::read_link(&next).ok()
        } else {
            None
        };
        if let Some(target) = target {
            if target.is_absolute() {
                resolved = PathBuf::from("/");
            }
            rest.extend(components_reversed(&target));
            links.push(next);
        } else {
            resolved = next;
        }
    }
    Resolved { path: resolved, links }
}

/// Splits at every slash and keeps `.` and `..`, which [`Path::components`] would partly normalise away.
fn components_reversed(path: &Path) -> Vec<OsString> {
    path.as_os_str()
        .as_bytes()
        .split(|&b| b == b'/')
        .rev()
        .map(|part| OsString::from_vec(part.to_vec()))
        .collect()
}

/// Which directory this is, whatever name it goes by: a bind mount shows the same device and inode under another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The identity of what `path` names now, or `None` if nothing does.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
        })
    }
}

/// A resolved place together with the identities of itself and of all its parents.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: PathBuf,
    identity: Option<Identity>,
    chain: Vec<Identity>,
}

impl Place {
    /// Looks at `path`, which has to be resolved already.
    pub(crate) fn new(path: PathBuf) -> Self {
        let identity = Identity::of(&path);
        let chain = path.ancestors().filter_map(Identity::of).collect();
        Self { path, identity, chain }
    }

    /// The resolved path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `other` is this place or lies somewhere below it, by path or by identity.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        other.path.starts_with(&self.path) || self.identity.is_some_and(|id| other.chain.contains(&id))
    }

    /// Whether `other` lies below this place and is not the place itself.
    pub(crate) fn holds_strictly(&self, other: &Self) -> bool {
        self.holds(other) && !other.holds(self)
    }
}

/// Replaces a leading `~` component with `home`. Other users' homes (`~name`) are not looked up: `None`.
pub(crate) fn expand_home(text: &OsStr, home: &Path) -> Option<PathBuf> {
    let bytes = text.as_bytes();
    match bytes {
        b"~" => Some(home.to_path_buf()),
        [b'~', b'/', rest @ ..] => {
            let rest = rest
                .iter()
                .position(|&b| b != b'/')
                .and_then(|at| rest.get(at..))
                .unwrap_or_default();
            Some(home.join(OsStr::from_bytes(rest)))
        }
        [b'/', ..] => Some(PathBuf::from(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn missing_components_and_dot_dot() {
        let cwd = Path::new("/nowhere/at");
        for (given, want) in [
            ("all", "/nowhere/at/all"),
            ("/a//b/./c", "/a/b/c"),
            ("../../../x", "/x"),
            ("", "/nowhere/at"),
            ("/", "/"),
            ("/missing/../etc", "/etc"),
        ] {
            assert_eq!(resolve(Path::new(given), cwd).path, Path::new(want), "{given:?}");
        }
    }

    #[test]
    fn dot_dot_goes_up_from_where_the_link_leads() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a/b", root.join("link")).unwrap();
        let got = resolve(Path::new("link/../c"), &root);
        assert_eq!(got.path, root.join("a/c"));
        assert_eq!(got.links, [root.join("link")]);
    }

    #[test]
    fn a_link_loop_ends() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        symlink("two", root.join("one")).unwrap();
        symlink("one", root.join("two")).unwrap();
        let got = resolve(Path::new("one/x"), &root);
        assert_eq!(got.links.len(), MAX_LINKS);
        assert!(got.path.starts_with(&root));
    }

    #[test]
    fn a_home_is_expanded_only_as_a_whole_component() {
        let home = Path::new("/home/me");
        for (given, want) in [
            ("~", Some("/home/me")),
            ("~/src", Some("/home/me/src")),
            ("~//src", Some("/home/me/src")),
            ("/srv", Some("/srv")),
            ("~you/src", None),
            ("src", None),
            ("./src", None),
        ] {
            assert_eq!(
                expand_home(OsStr::new(given), home).as_deref(),
                want.map(Path::new),
                "{given}"
            );
        }
    }

    fn tree() -> impl Strategy<Value = Vec<(u8, String)>> {
        // Few names, so that links meet directories, files and each other.
        let target = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "..", ".", "/"]), 1..5)
            .prop_map(|parts| parts.join("/"));
        prop::collection::vec((0u8..9, target), 0..9)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The reference is coreutils itself, on a real tree of directories and links.
        #[test]
        fn agrees_with_realpath_m(tree in tree(), asked in "[abc./]{0,12}") {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            for sub in ["a", "b", "a/b", "a/c"] {
                std::fs::create_dir_all(root.join(sub)).unwrap();
            }
            for (slot, target) in tree {
                let name = ["c", "b/a", "b/b", "a/b/a", "a/b/c", "a/a", "b/c", "a/c/a", "a/c/b"][usize::from(slot)];
                // An absolute target stays in the tree: tests must not depend on the machine's own root.
                let target = match target.strip_prefix('/') {
                    Some(rest) => format!("{}/{rest}", root.display()),
                    None => target,
                };
                let _ = symlink(target, root.join(name));
            }
            let asked = format!("./{asked}");
            // It has no bound like the kernel's on links that multiply: a tree it cannot resolve in time says nothing.
            let words = ["1", "realpath", "-m", "--", &asked];
            let out = Command::new("timeout").args(words).current_dir(&root).output().unwrap();
            // A loop is an error there; here it only has to end.
            let got = resolve(Path::new(&asked), &root);
            if out.status.success() {
                let mut want = out.stdout;
                want.pop();
                prop_assert_eq!(got.path.as_os_str().as_bytes(), &want[..]);
            }
        }
    }
}
