//! A process of the lab: started in its namespace, on its core, in a control group of its own; killed with all its children.

use std::io::sink;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, io, thread};

use anyhow::{Context, Result, bail};

use super::{DAEMON_CORE, LOAD_CORE, Lab, Net, program};
use crate::accounting::{Account, descendants, memory};

/// A running program; dropping it kills it.
pub(crate) struct Daemon {
    child: Child,
    account: Account,
    stamp: Option<String>,
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
        let mut enter = Command::new(program()?);
        enter.arg("enter").arg("--net").arg(lab.net(net)).args(["--cpu", &core.to_string()]);
        if let Some(group) = account.group() {
            enter.arg("--cgroup").arg(group);
        }
        if let Some(stamp) = &stamp {
            enter.args(["--stamp", stamp]);
        }
        enter.arg("--").args(command).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = enter.spawn().with_context(|| format!("cannot start {}", command.join(" ")))?;
        // Events are written to a pipe that somebody reads, as podman's conmon does.
        if let Some(mut output) = child.stdout.take() {
            thread::spawn(move || io::copy(&mut output, &mut sink()));
        }
        Ok(Self { child, account, stamp })
    }

    /// CPU time used so far, user and system, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Result<u64> {
        self.account.micros(self.child.id())
    }

    /// Proportional set size of the daemon and its children, in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        descendants(self.child.id()).into_iter().map(memory).sum()
    }

    /// How its CPU time is accounted.
    pub(crate) const fn accounting(&self) -> &'static str {
        self.account.kind()
    }

    /// When the program was executed, in nanoseconds since 1970.
    pub(crate) fn executed(&self) -> Result<u128> {
        let Some(stamp) = &self.stamp else { bail!("only a measured daemon has a stamp") };
        fs::read_to_string(stamp)?.trim().parse().context("the daemon was not executed")
    }

    /// Fails if the program has ended.
    pub(crate) fn assert_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("a daemon under test ended: {status}"),
            None => Ok(()),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for pid in descendants(self.child.id()).into_iter().rev() {
            // A child that ended by itself meanwhile is no loss, and the pid namespace ends whatever is left.
            let _ = super::command("kill", &["-KILL", &pid.to_string()]);
        }
        let _ = self.child.wait();
        // A killed child's memory takes a moment to go, and until then its control group cannot.
        thread::sleep(Duration::from_millis(20));
        self.account.close();
    }
}
