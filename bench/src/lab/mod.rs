//! The run's own world: new mount, pid, network and ipc namespaces, so that the kernel removes all of it whatever happens.

mod daemon;
mod network;
mod part;
mod roles;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

pub(crate) use daemon::Daemon;
pub(crate) use network::{Net, RESOLVER, ROUTER_ADDRESSES};
pub(crate) use part::{hold, load, ready};
pub(crate) use roles::{Role, host_names};

/// Set in the process that already is inside.
const INSIDE: &str = "BENCH_INSIDE";
/// A directory every Linux system has and nobody keeps a checkout under; in the new mount namespace a tmpfs covers it.
const SCRATCH: &str = "/mnt";

/// The core that load, origin and this program share.
pub(crate) const LOAD_CORE: usize = 0;
/// The core that the measured daemon has to itself.
pub(crate) const DAEMON_CORE: usize = 1;

/// The namespaces, the scratch directory and the servers behind the router.
pub(crate) struct Lab {
    /// Scratch directory, gone with the run.
    pub(crate) dir: PathBuf,
    /// Origin and name server, ended with the lab.
    _servers: Vec<Daemon>,
    /// Held by one run at a time.
    _lock: File,
}

/// Runs `work` in new namespaces: the first call re-executes the program under unshare(1).
pub(crate) fn inside(work: impl FnOnce(&Lab) -> Result<()>) -> Result<()> {
    if env::var_os(INSIDE).is_some() {
        return work(&Lab::build()?);
    }
    let mut unshare = with_priority("unshare");
    unshare.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--net",
        "--ipc",
    ]);
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let this = env::current_exe().context("cannot find this program")?;
    Err(unshare.arg(this).args(env::args_os().skip(1)).env(INSIDE, "1").exec()).context("cannot execute unshare")
}

/// With real-time priority where that is allowed: other programs of the machine must not come between load and daemon.
/// (A low nice value would not do: it counts within a session only, see autogroup in sched(7).)
fn with_priority(program: &str) -> Command {
    let chrt = ["--rr", "1"];
    let allowed = Command::new("chrt")
        .args(chrt)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if allowed.is_ok_and(|status| status.success()) {
        let mut command = Command::new("chrt");
        command.args(chrt).arg(program);
        return command;
    }
    Command::new(program)
}

/// Runs a command to its end; its output is the error.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot execute {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}: {}", arguments.join(" "), output.status, said.trim());
    }
    Ok(())
}

impl Lab {
    fn build() -> Result<Self> {
        crate::accounting::sweep();
        let lock = lock()?;
        let dir = PathBuf::from(SCRATCH);
        command("mount", &["-t", "tmpfs", "bench", SCRATCH])?;
        network::build(&dir)?;
        // The daemons look names up as they do in a container: through /etc/resolv.conf.
        let resolv = dir.join("resolv.conf");
        fs::write(&resolv, format!("nameserver {RESOLVER}\n"))?;
        bind(&resolv, Path::new("/etc/resolv.conf"))?;
        let mut lab = Self {
            dir,
            _servers: Vec::new(),
            _lock: lock,
        };
        let origin = Daemon::helper(&lab, Net::Origin, &[&program()?, "origin"])?;
        let resolver = Daemon::helper(
            &lab,
            Net::Origin,
            &["dnsmasq", "-k", "-C", &roles::resolver_config(&lab.dir)?],
        )?;
        lab._servers = vec![origin, resolver];
        Ok(lab)
    }

    /// The file of a network namespace.
    pub(crate) fn net(&self, net: Net) -> PathBuf {
        network::file(&self.dir, net)
    }

    /// Writes a file into the scratch directory and gives its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.display().to_string())
    }
}

/// Waits until no other run is under way: two on the same cores would measure each other. The lock is on a directory that
/// exists in any case, so nothing is left behind.
fn lock() -> Result<File> {
    let directory = File::open(SCRATCH).with_context(|| format!("{SCRATCH} must exist"))?;
    if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err() {
        eprintln!("bench: another run is under way; waiting for its end");
        flock(&directory, FlockOperation::LockExclusive).context("cannot wait for the other run")?;
    }
    Ok(directory)
}

/// The path of this program.
pub(crate) fn program() -> Result<String> {
    Ok(env::current_exe()
        .context("cannot find this program")?
        .display()
        .to_string())
}

fn bind(file: &Path, over: &Path) -> Result<()> {
    let target = fs::canonicalize(over).with_context(|| format!("{} must exist", over.display()))?;
    command(
        "mount",
        &["--bind", &file.display().to_string(), &target.display().to_string()],
    )
}
