//! Private namespaces for a whole run: the kernel takes away everything in them when the run ends, however it ends.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use super::binary;
use super::process::run;

/// Where the lab keeps its files: on a tmpfs that only this run sees.
pub const DIR: &str = "/run/lab";

/// Says to the re-executed program that it is inside.
const INSIDE: &str = "AS_LAB_INSIDE";

/// Variables that the inside may see.
const KEPT: [&str; 6] = [
    "AS_LAB_PATIENCE",
    "AS_ROUTER_BINARY",
    "CARGO_MANIFEST_DIR",
    "CI",
    "RUST_BACKTRACE",
    "TERM",
];

/// Runs the calling program again inside new mount, pid, network, ipc and uts namespaces, and gives its exit code;
/// `None` means that this is already the inside, with private `/run` and `/dev/shm`.
///
/// The caller dies: setpriv makes the kernel kill unshare. unshare dies: it has asked the kernel to kill its child,
/// which is pid 1 of the namespace, and with it goes every process of the run. Network namespaces have their names in
/// the private `/run/netns`, so that they end with the last process.
#[must_use]
pub fn enter() -> Option<ExitCode> {
    if env::var_os(INSIDE).is_some() {
        private_directories();
        return None;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("The lab makes network namespaces, which needs root. Run it as root, or with `sudo -E`.");
        return Some(ExitCode::FAILURE);
    }
    binary::prepare();
    let program = env::current_exe().expect("path of this program");
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare"])
        .args([
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .args(["--net", "--ipc", "--uts"])
        .arg(program)
        .args(env::args_os().skip(1))
        // Debian's own programs and no settings of the person who runs this (proxies, CA files, locales).
        .env_clear()
        .envs(env::vars_os().filter(|(key, _)| KEPT.iter().any(|kept| key == kept)))
        .envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("LC_ALL", "C.UTF-8"),
            ("HOME", "/run/lab/home"),
            ("TMPDIR", "/run/lab/tmp"),
        ])
        .env(INSIDE, "1")
        .status()
        .expect("setpriv and unshare (package util-linux)");
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(1));
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// `/run` and `/dev/shm` become the run's own, and all else of the root file system read-only: what a program of the lab
/// leaves lying about is not there afterwards.
fn private_directories() {
    run(Command::new("mount").args(["-o", "remount,bind,ro", "/"]), 10).ok();
    for directory in ["/run", "/dev/shm"] {
        run(
            Command::new("mount").args(["-t", "tmpfs", "-o", "mode=755", "lab", directory]),
            10,
        )
        .ok();
    }
    run(Command::new("chmod").args(["1777", "/dev/shm"]), 10).ok();
    // /etc/resolv.conf may be a link into /run: namespaces bind their own file over its target.
    if let Ok(target) = std::fs::read_link("/etc/resolv.conf") {
        let target = std::path::Path::new("/etc").join(target);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        if !target.exists() {
            std::fs::write(target, "").unwrap();
        }
    }
    for directory in ["/run/netns", "/run/sshd", "/run/lab/home", "/run/lab/tmp"] {
        std::fs::create_dir_all(directory).unwrap();
    }
    run(Command::new("ip").args(["link", "set", "lo", "up"]), 10).ok();
}
