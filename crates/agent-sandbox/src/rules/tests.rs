//! A real directory tree stands for the machine, since the rules are about links and identities.

use super::*;
use proptest::prelude::*;
use std::os::unix::fs::symlink;

struct Machine {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for sub in [
            "home/me/src/repo/sub",
            "home/me/.config/agent-sandbox",
            "home/me/.ssh",
            "home/me/.gnupg",
            "home/me/.local/share/containers/storage",
            "home/me/.local/src/repo",
            "home/me/.cache/x",
            "home/me/bin",
            "home/me/go/bin",
            "srv/work/repo",
            "tmp/x",
            "run/user/1000",
            "usr/bin",
        ] {
            std::fs::create_dir_all(root.join(sub)).unwrap();
        }
        Self { _dir: dir, root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn around(&self, roots: Option<&[&str]>) -> Surroundings {
        Surroundings {
            home: self.at("home/me"),
            private: ["home/me/.ssh", "home/me/.gnupg", "home/me/.config", "run/user/1000"]
                .iter()
                .chain(&["home/me/.local/share/containers"])
                .map(|p| self.at(p))
                .collect(),
            system: ["run", "tmp"].iter().map(|p| self.at(p)).collect(),
            configuration: vec![self.at("home/me/.config/agent-sandbox")],
            search_path: self.at("usr/bin").into_os_string(),
            roots: roots.map(|roots| roots.iter().map(|p| self.at(p)).collect()),
            allowed_paths_file: self.at("home/me/.config/agent-sandbox/allowed-paths"),
        }
    }

    fn check(&self, dir: &str, around: &Surroundings) -> Result<LaunchDir, Rule> {
        check(&self.at(dir), around).map_err(|refused| refused.rule)
    }
}

#[test]
fn without_a_list_the_home_is_the_only_root() {
    let m = Machine::new();
    let around = m.around(None);
    for allowed in [
        "home/me/src",
        "home/me/src/repo",
        "home/me/src/repo/sub",
        "home/me/src/not/yet/there",
    ] {
        let dir = m
            .check(allowed, &around)
            .unwrap_or_else(|rule| panic!("{allowed}: {rule}"));
        assert_eq!(Path::new(dir.path()), m.at(allowed));
    }
    assert_eq!(m.check("home/me", &around), Err(Rule::Home));
    assert_eq!(m.check("home", &around), Err(Rule::Home));
    assert_eq!(check(Path::new("/"), &around).unwrap_err().rule, Rule::Home);
    assert!(matches!(
        m.check("srv/work/repo", &around),
        Err(Rule::OutsideRoots { .. })
    ));
    assert!(matches!(
        m.check("home/me/.cache/x", &around),
        Err(Rule::DotDirectory(..))
    ));
    assert!(matches!(
        m.check("home/me/.cache", &around),
        Err(Rule::DotDirectoryItself(..))
    ));
    assert_eq!(m.check("tmp/x", &around), Err(Rule::SystemPlace(m.at("tmp"))));
    assert_eq!(m.check("run", &around), Err(Rule::SystemPlace(m.at("run"))));
}

#[test]
fn listed_roots_are_trusted_strictly_below_themselves() {
    let m = Machine::new();
    let around = m.around(Some(&["home/me/.local/src", "srv/work"]));
    assert!(m.check("home/me/.local/src/repo", &around).is_ok());
    assert!(m.check("srv/work/repo", &around).is_ok());
    assert!(matches!(m.check("srv/work", &around), Err(Rule::OutsideRoots { .. })));
    assert!(matches!(
        m.check("home/me/.local/src", &around),
        Err(Rule::DotDirectory(..))
    ));
    assert!(matches!(
        m.check("home/me/src/repo", &around),
        Err(Rule::OutsideRoots { .. })
    ));
}

#[test]
fn no_list_opens_a_place_that_always_aborts() {
    let m = Machine::new();
    // The widest list there can be.
    let around = m.around(Some(&[
        "",
        "home",
        "home/me",
        "home/me/.local",
        "home/me/.ssh",
        "tmp",
        "run",
    ]));
    for (dir, rule) in [
        ("home/me", Rule::Home),
        ("home", Rule::Home),
        ("tmp/x", Rule::SystemPlace(m.at("tmp"))),
        ("run/user", Rule::SystemPlace(m.at("run"))),
        ("home/me/.ssh", Rule::PrivatePlace(m.at("home/me/.ssh"))),
        ("home/me/.ssh/keys", Rule::PrivatePlace(m.at("home/me/.ssh"))),
        ("home/me/.gnupg/x", Rule::PrivatePlace(m.at("home/me/.gnupg"))),
        ("home/me/.config/nvim", Rule::PrivatePlace(m.at("home/me/.config"))),
        (
            "home/me/.local/share",
            Rule::PrivatePlace(m.at("home/me/.local/share/containers")),
        ),
        (
            "home/me/.local/share/containers/storage",
            Rule::PrivatePlace(m.at("home/me/.local/share/containers")),
        ),
    ] {
        assert_eq!(m.check(dir, &around), Err(rule), "{dir}");
    }
    assert!(matches!(
        m.check("home/me/.cache", &around),
        Err(Rule::DotDirectoryItself(..))
    ));
    // The root `~` is not a root inside the dot-directory.
    assert!(matches!(
        m.check("home/me/.cache/x", &around),
        Err(Rule::DotDirectory(..))
    ));
}

#[test]
fn a_path_entry_is_never_launched_from_nor_contained() {
    let m = Machine::new();
    let mut around = m.around(None);
    let set = |around: &mut Surroundings, text: String| around.search_path = text.into();
    let entry = |rule: Result<LaunchDir, Rule>| matches!(rule, Err(Rule::PathEntry { .. }));

    set(
        &mut around,
        format!("{0}/usr/bin:{0}/home/me/bin:{0}/home/me/go/bin", m.root.display()),
    );
    assert!(entry(m.check("home/me/bin", &around)));
    assert!(entry(m.check("home/me/go", &around)));
    assert!(m.check("home/me/go/src", &around).is_ok());

    // An entry that does not exist yet could be created from inside.
    set(&mut around, m.at("home/me/src/repo/not/yet").display().to_string());
    assert!(entry(m.check("home/me/src/repo", &around)));
    assert!(m.check("home/me/src/repo/sub", &around).is_ok());

    // Relative entries are taken from the launch directory, as the shell does.
    for relative in ["bin", "./bin", ".", "sub/../bin", "~/bin"] {
        set(&mut around, relative.to_owned());
        assert!(entry(m.check("home/me/src/repo", &around)), "{relative}");
    }
    set(&mut around, "../bin".to_owned());
    assert!(m.check("home/me/src/repo", &around).is_ok());

    for empty in [":/usr/bin", "/usr/bin:", "/usr/bin::/bin"] {
        set(&mut around, empty.to_owned());
        assert_eq!(
            m.check("home/me/src/repo", &around),
            Err(Rule::EmptyPathEntry),
            "{empty}"
        );
    }
    set(&mut around, String::new());
    assert!(m.check("home/me/src/repo", &around).is_ok());
}

#[test]
fn a_path_entry_through_a_link_in_the_directory_counts() {
    let m = Machine::new();
    symlink(m.at("usr/bin"), m.at("home/me/src/repo/tools")).unwrap();
    let mut around = m.around(None);
    around.search_path = m.at("home/me/src/repo/tools").into_os_string();
    assert!(matches!(
        m.check("home/me/src/repo", &around),
        Err(Rule::PathEntry { .. })
    ));
    // And an entry elsewhere that leads into it.
    symlink(m.at("home/me/src/repo/sub"), m.at("usr/local-bin")).unwrap();
    around.search_path = m.at("usr/local-bin").into_os_string();
    assert!(matches!(
        m.check("home/me/src/repo", &around),
        Err(Rule::PathEntry { .. })
    ));
}

#[test]
fn the_policy_is_never_inside() {
    let m = Machine::new();
    let mut around = m.around(None);
    around.configuration.push(m.at("home/me/src/repo/policy/allowed-hosts"));
    let refused = Err(Rule::Configuration(m.at("home/me/src/repo/policy/allowed-hosts")));
    assert_eq!(m.check("home/me/src/repo", &around), refused);
    assert_eq!(m.check("home/me/src", &around), refused);
    // A configuration elsewhere that is only a link into the directory, or that leads out through it.
    std::fs::create_dir_all(m.at("srv/policy")).unwrap();
    symlink(m.at("home/me/src/repo/real"), m.at("srv/policy/allowed-hosts")).unwrap();
    symlink(m.at("srv"), m.at("home/me/src/repo/out")).unwrap();
    for spelling in ["srv/policy/allowed-hosts", "home/me/src/repo/out/policy/x"] {
        let mut around = m.around(None);
        around.configuration.push(m.at(spelling));
        assert_eq!(
            m.check("home/me/src/repo", &around),
            Err(Rule::Configuration(m.at(spelling)))
        );
    }
}

#[test]
fn a_home_that_is_a_link_is_the_same_home() {
    let m = Machine::new();
    symlink(m.at("home/me"), m.at("srv/my-home")).unwrap();
    let mut around = m.around(None);
    around.home = m.at("srv/my-home");
    assert!(m.check("home/me/src/repo", &around).is_ok());
    assert!(m.check("srv/my-home/src/repo", &around).is_ok());
    assert_eq!(m.check("home/me", &around), Err(Rule::Home));
    assert_eq!(m.check("srv/my-home", &around), Err(Rule::Home));
    // Whoever writes to srv moves the home.
    assert_eq!(m.check("srv", &around), Err(Rule::Home));
    assert!(matches!(
        m.check("home/me/.cache/x", &around),
        Err(Rule::DotDirectory(..))
    ));
}

#[test]
fn what_podman_cannot_mount_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let m = Machine::new();
    let around = m.around(None);
    assert_eq!(m.check("home/me/src/a:b", &around), Err(Rule::Colon));
    let odd = m.at("home/me/src").join(OsString::from_vec(vec![b'x', 0xff]));
    assert_eq!(check(&odd, &around).unwrap_err().rule, Rule::NotUtf8);
    // The colon hides behind a link.
    std::fs::create_dir_all(m.at("home/me/src/c:d")).unwrap();
    symlink(m.at("home/me/src/c:d"), m.at("home/me/src/plain")).unwrap();
    assert_eq!(m.check("home/me/src/plain", &around), Err(Rule::Colon));
}

#[test]
fn the_resolved_target_is_what_counts_and_what_is_mounted() {
    let m = Machine::new();
    symlink(m.at("home/me/src/repo"), m.at("home/me/link")).unwrap();
    symlink(m.at("home/me/.ssh"), m.at("home/me/src/innocent")).unwrap();
    let around = m.around(None);
    let dir = m.check("home/me/link/sub", &around).unwrap();
    assert_eq!(Path::new(dir.path()), m.at("home/me/src/repo/sub"));
    assert_eq!(
        m.check("home/me/src/innocent", &around),
        Err(Rule::PrivatePlace(m.at("home/me/.ssh")))
    );
}

#[test]
fn a_directory_swapped_after_the_check_is_noticed() {
    let m = Machine::new();
    let dir = m.check("home/me/src/repo", &m.around(None)).unwrap();
    assert!(dir.is_unchanged());
    std::fs::rename(m.at("home/me/src/repo"), m.at("home/me/src/old")).unwrap();
    assert!(!dir.is_unchanged());
    symlink(m.at("home/me/.ssh"), m.at("home/me/src/repo")).unwrap();
    assert!(!dir.is_unchanged());
}

#[test]
fn every_refusal_is_one_sentence_that_names_directory_rule_and_remedy() {
    let m = Machine::new();
    let mut around = m.around(None);
    around.search_path = m.at("home/me/bin").into_os_string();
    for dir in [
        "home/me",
        "tmp/x",
        "home/me/.ssh",
        "home/me/.cache/x",
        "home/me/.local",
        "home/me/bin",
        "srv/work",
    ] {
        let text = check(&m.at(dir), &around).unwrap_err().to_string();
        assert!(
            text.contains(&format!("refusing to launch from {}: ", m.at(dir).display())),
            "{text}"
        );
        assert!(
            text.contains("; ") && !text.contains('\n') && !text.contains("  "),
            "{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No spelling of a refused place is let through: detours over `..`, doubled slashes, `.` and links.
    #[test]
    fn no_other_spelling_reaches_a_refused_place(
        place in prop::sample::select(vec![
            "home/me", "home", "home/me/.ssh", "home/me/.config/agent-sandbox", "tmp/x", "run/user/1000",
            "home/me/.local", "home/me/.cache/x", "home/me/.local/share/containers", "home/me/go",
        ]),
        detours in prop::collection::vec((0usize..6, prop::sample::select(vec!["usr", "srv/work", "home/me/src"])), 0..4),
        link in any::<bool>(),
    ) {
        let m = Machine::new();
        let mut around = m.around(Some(&["", "home/me", "srv", "home/me/src"]));
        around.search_path = m.at("home/me/go/bin").into_os_string();
        let mut spelling = m.root.clone();
        for (kind, via) in detours {
            match kind {
                0 => spelling = PathBuf::from(format!("{}/.//.", spelling.display())),
                1 => spelling = PathBuf::from(format!("{}/missing/..", spelling.display())),
                2 => {
                    let up = "../".repeat(via.split('/').count());
                    spelling = PathBuf::from(format!("{}/{via}/{up}.", spelling.display()));
                }
                _ => {
                    let name = format!("link{kind}");
                    let _ = symlink(&m.root, m.at(&format!("{via}/{name}")));
                    spelling = PathBuf::from(format!("{}/{via}/{name}", spelling.display()));
                }
            }
        }
        let mut spelling = PathBuf::from(format!("{}/{place}", spelling.display()));
        if link {
            symlink(&spelling, m.at("home/me/src/x")).unwrap();
            spelling = m.at("home/me/src/x");
        }
        prop_assert!(check(&spelling, &around).is_err(), "{}", spelling.display());
    }

    /// Whatever is let through is mounted under its resolved path and lies strictly under a root.
    #[test]
    fn what_is_let_through_is_resolved_and_below_a_root(asked in "(home/me|srv/work|src|repo|\\.\\.|\\.|/|sub|\\.ssh|x){1,6}") {
        let m = Machine::new();
        let around = m.around(Some(&["home/me/src", "srv/work"]));
        if let Ok(dir) = check(&m.at(&asked), &around) {
            let path = PathBuf::from(dir.path());
            prop_assert_eq!(&resolve(&path, Path::new("/")).path, &path);
            let roots = ["home/me/src", "srv/work"].map(|root| m.at(root));
            prop_assert!(roots.iter().any(|root| path.starts_with(root) && path != *root));
        }
    }
}
