//! The program under test.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::sandbox::DIR;

/// Names the file to test; without it the workspace's debug build is made and taken.
const VARIABLE: &str = "AS_ROUTER_BINARY";

/// Path of `as-router`, as a copy that every user of the lab may run.
pub fn as_router() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let copy = Path::new(DIR).join("as-router");
        std::fs::copy(source(), &copy).unwrap_or_else(|error| panic!("{VARIABLE}={}: {error}", source().display()));
        copy
    })
}

/// The file that is tested, before the copy.
#[must_use]
pub fn source() -> PathBuf {
    env::var_os(VARIABLE).map_or_else(debug_build, PathBuf::from)
}

/// Builds outside of the namespaces: call this before [`super::sandbox::enter`].
pub fn prepare() {
    if env::var_os(VARIABLE).is_some() {
        return;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "-p", "as-router", "--manifest-path"])
        .arg(workspace().join("Cargo.toml"))
        .status()
        .expect("cargo, to build as-router");
    assert!(status.success(), "as-router does not build");
}

fn debug_build() -> PathBuf {
    // target/debug/deps/e2e-HASH or target/debug/demo
    let this = env::current_exe().unwrap();
    let debug = this
        .ancestors()
        .find(|path| path.ends_with("debug") || path.ends_with("release"))
        .unwrap();
    debug.parent().unwrap().join("debug/as-router")
}

/// The top directory of the source.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Whether the file under test is the one that is released: static and stripped.
#[must_use]
pub fn is_release() -> bool {
    env::var_os(VARIABLE).is_some()
}
