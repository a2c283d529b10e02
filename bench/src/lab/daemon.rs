//! A process of the lab: started in its namespace, on its core, in a control group of its own; killed with all its children.

use std::fs::File;
use std::io::sink;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;
use std::{fs, io, thread};

use anyhow::{Context, Result, bail};

use super::part::enter;
use super::{DAEMON_CORE, LOAD_CORE, Lab, Net};
use crate::accounting::{Account, descendants, memory};
use crate::stats::now_nanos;

/// A running program; dropping it kills it.
pub(crate) struct Daemon {
    child: Child,
    account: Account,
    stamp: Option<String>,
    complaints: PathBuf,
}

impl Daemon {
    /// A daemon under test, on its own core. `name` is unique in the run.
    pub(crate) fn measured(lab: &Lab, name: &str, net: Net, command: &[&str]) -> Result<Self> {
        let account = Account::open(name);
        let stamp = lab.write(&format!("{name}.stamp"), "")?;
        Self::start(lab, net, DAEMON_CORE, account, Some(stamp), command)
    }

    /// A server or load generator, whose cost is nobody's concern.
    pub(crate) fn helper(lab: &Lab, net: Net, command: &[&str]) -> Result<Self> {
        Self::start(lab, net, LOAD_CORE, Account::None, None, command)
    }

    fn start(
        lab: &Lab,
        net: Net,
        core: usize,
        account: Account,
        stamp: Option<String>,
        command: &[&str],
    ) -> Result<Self> {
        let mut enter = enter()?;
        enter.arg("--net").arg(lab.net(net)).args(["--cpu", &core.to_string()]);
        if let Some(group) = account.group() {
            enter.arg("--cgroup").arg(group);
        }
        if let Some(stamp) = &stamp {
            enter.args(["--stamp", stamp]);
        }
        let complaints = lab.dir.join(format!("{}.stderr", now_nanos()));
        enter
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&complaints)?);
        let mut child = enter
            .spawn()
            .with_context(|| format!("cannot start {}", command.join(" ")))?;
        // Events are written to a pipe that somebody reads, as podman's conmon does.
        if let Some(mut output) = child.stdout.take() {
            thread::spawn(move || io::copy(&mut output, &mut sink()));
        }
        Ok(Self {
            child,
            account,
            stamp,
            complaints,
        })
    }

    /// CPU time used so far, user and system, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Result<u64> {
        self.account.micros(self.child.id())
    }

    /// Proportional set size of the daemon and its children, in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        descendants(self.child.id()).into_iter().map(memory).sum()
    }

    /// What it wrote to stderr, for an error message.
    pub(crate) fn complaints(&self) -> String {
        let text = fs::read_to_string(&self.complaints).unwrap_or_default();
        text.lines().take(5).collect::<Vec<_>>().join("; ")
    }

    /// How its CPU time is accounted.
    pub(crate) const fn accounting(&self) -> &'static str {
        self.account.kind()
    }

    /// When the program was executed, in nanoseconds since 1970.
    pub(crate) fn executed(&self) -> Result<u128> {
        let Some(stamp) = &self.stamp else {
            bail!("only a measured daemon has a stamp")
        };
        // Another daemon of the same contender may have answered before this one's turn came.
        for _ in 0..500 {
            if let Ok(nanos) = fs::read_to_string(stamp)?.parse() {
                return Ok(nanos);
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("a daemon was not executed within 5 s")
    }

    /// Fails if the program has ended.
    pub(crate) fn assert_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("a daemon ended: {status}: {}", self.complaints()),
            None => Ok(()),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Parents first: a master would start a new worker.
        for pid in descendants(self.child.id()) {
            // A child that ended by itself meanwhile is no loss, and the pid namespace ends whatever is left.
            let _ = super::command("kill", &["-KILL", &pid.to_string()]);
        }
        let _ = self.child.wait();
        // A killed child's memory takes a moment to go, and until then its control group cannot.
        thread::sleep(Duration::from_millis(20));
        self.account.close();
    }
}
