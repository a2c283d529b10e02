//! Where the sessions run: this user's podman, or for root the podman lab.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Names the launcher to test; without it the workspace's debug build is made and taken.
const LAUNCHER: &str = "AGENT_SANDBOX_TEST_LAUNCHER";

/// Runs this program again in the lab and gives its exit code; `None` means that this is the place.
pub(crate) fn enter() -> Option<ExitCode> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let launcher = env::var_os(LAUNCHER).map_or_else(|| build(here), PathBuf::from);
    let program = env::current_exe().expect("path of this program");
    if !rustix::process::geteuid().is_root() {
        if env::var_os(LAUNCHER).is_some() {
            return None;
        }
        let status = Command::new(program)
            .args(env::args_os().skip(1))
            .env(LAUNCHER, launcher)
            .status();
        return Some(code(status));
    }
    let debian = env::var("PODMAN_LAB_DEBIAN").unwrap_or_else(|_| "13".to_owned());
    let bind = |path: &Path| format!("{}", path.display());
    let status = Command::new(here.join("podman-lab/enter"))
        .args([
            "--debian",
            &debian,
            "--env",
            &format!("{LAUNCHER}={}", launcher.display()),
        ])
        .args(["--bind", &bind(&program), "--bind", &bind(&launcher), "--"])
        .arg(&program)
        .args(env::args_os().skip(1))
        .status();
    Some(code(status))
}

fn code(status: std::io::Result<std::process::ExitStatus>) -> ExitCode {
    let code = status.expect("the tests run again").code();
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn build(here: &Path) -> PathBuf {
    let workspace = here.parent().expect("the workspace");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "-p", "agent-sandbox", "--manifest-path"])
        .arg(workspace.join("Cargo.toml"))
        .status()
        .expect("cargo, to build agent-sandbox");
    assert!(status.success(), "agent-sandbox does not build");
    // target/debug/deps/session-HASH
    let program = env::current_exe().expect("path of this program");
    let debug = program
        .ancestors()
        .find(|path| path.ends_with("debug") || path.ends_with("release"));
    debug
        .and_then(Path::parent)
        .expect("the target directory")
        .join("debug/agent-sandbox")
}
