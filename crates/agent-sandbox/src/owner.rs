//! Who a session belongs to: a process, known so well that another one with its id is not taken for it.

use std::collections::HashMap;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process: its id, when it started, in which boot and in which pid namespace. A bare id is reused
/// (redwoodjs/local-ci #186).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    /// Clock ticks after boot (proc_pid_stat(5), field 22).
    start_time: u64,
    boot_id: String,
    pid_namespace: String,
}

/// Whether an owner still lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The process runs.
    Alive,
    /// The process has ended, or the machine was started anew since.
    Gone,
    /// It runs, or ran, in another pid namespace, where its id says nothing here.
    Unknown,
}

const PID: &str = "agent-sandbox.launcher-pid";
const START_TIME: &str = "agent-sandbox.launcher-start-time";
const BOOT_ID: &str = "agent-sandbox.boot-id";
const PID_NAMESPACE: &str = "agent-sandbox.pid-namespace";

impl Owner {
    /// This process.
    ///
    /// # Errors
    /// When /proc is not there or not as expected.
    pub(crate) fn this_process() -> io::Result<Self> {
        let pid = std::process::id();
        Ok(Self {
            pid,
            start_time: start_time(pid)?,
            boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
                .trim()
                .to_owned(),
            pid_namespace: std::fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned(),
        })
    }

    /// The labels that tell this owner.
    pub(crate) fn labels(&self) -> [(&'static str, String); 4] {
        [
            (PID, self.pid.to_string()),
            (START_TIME, self.start_time.to_string()),
            (BOOT_ID, self.boot_id.clone()),
            (PID_NAMESPACE, self.pid_namespace.clone()),
        ]
    }

    /// The owner that labels tell, if they are whole.
    pub(crate) fn from_labels(labels: &HashMap<String, String>) -> Option<Self> {
        Some(Self {
            pid: labels.get(PID)?.parse().ok()?,
            start_time: labels.get(START_TIME)?.parse().ok()?,
            boot_id: labels.get(BOOT_ID)?.clone(),
            pid_namespace: labels.get(PID_NAMESPACE)?.clone(),
        })
    }

    /// The owner as lines of text, for a file.
    pub(crate) fn to_text(&self) -> String {
        self.labels()
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect()
    }

    /// The owner that a file tells, if it is whole.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Self::from_labels(&pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// Another process of this boot and pid namespace.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn sibling(&self, pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            start_time: start_time(pid)?,
            ..self.clone()
        })
    }

    /// A process of this boot and pid namespace that has ended.
    pub(crate) fn nobody(&self) -> Self {
        Self {
            pid: 0,
            start_time: 0,
            ..self.clone()
        }
    }

    /// Sends a signal to the process, if it still is the one that is meant.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // The descriptor pins the process before its start time is compared, so no other one gets the signal.
        if let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            && start_time(self.pid).is_ok_and(|start_time| start_time == self.start_time)
        {
            let _ = pidfd_send_signal(pidfd, signal);
        }
    }

    /// Whether the owner still lives, seen from the process `here`.
    pub(crate) fn life(&self, here: &Self) -> Life {
        if self.boot_id != here.boot_id {
            return Life::Gone;
        }
        if self.pid_namespace != here.pid_namespace {
            return Life::Unknown;
        }
        match start_time(self.pid) {
            Ok(start_time) if start_time == self.start_time => Life::Alive,
            _ => Life::Gone,
        }
    }
}

fn start_time(pid: u32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_start_time(&stat).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unexpected /proc/PID/stat"))
}

/// A zombie has ended; only its parent has not looked yet.
/// The command name, in parentheses, may itself hold blanks and parentheses: fields are counted after the last one.
fn parse_start_time(stat: &str) -> Option<u64> {
    const FIELDS_BEFORE: usize = 22 - 3;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    fields.clone().next().filter(|state| !matches!(*state, "Z" | "X"))?;
    fields.nth(FIELDS_BEFORE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_field_22_whatever_the_command_is_called() {
        let stat = "42 (a) (b c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21";
        assert_eq!(parse_start_time(stat), Some(777));
        assert_eq!(parse_start_time("42 (x) R 1"), None);
        assert_eq!(parse_start_time(&stat.replace(") R", ") Z")), None);
    }

    #[test]
    fn an_owner_survives_its_labels() {
        let owner = Owner::this_process().unwrap();
        let labels = owner
            .labels()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        assert_eq!(Owner::from_labels(&labels), Some(owner.clone()));
        assert_eq!(Owner::from_text(&owner.to_text()), Some(owner.clone()));
        assert_eq!(owner.life(&owner), Life::Alive);
        assert_eq!(Owner::from_labels(&HashMap::new()), None);
    }

    #[test]
    fn a_reused_id_an_earlier_boot_and_another_namespace() {
        let here = Owner::this_process().unwrap();
        let reused = Owner {
            start_time: here.start_time + 1,
            ..here.clone()
        };
        assert_eq!(reused.life(&here), Life::Gone);
        let rebooted = Owner {
            boot_id: "earlier".to_owned(),
            ..here.clone()
        };
        assert_eq!(rebooted.life(&here), Life::Gone);
        let elsewhere = Owner {
            pid_namespace: "pid:[1]".to_owned(),
            ..here.clone()
        };
        assert_eq!(elsewhere.life(&here), Life::Unknown);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(Owner { pid, ..here.clone() }.life(&here), Life::Gone);
    }
}
