//! CPU time and memory of a daemon and everything it forks.
//!
//! Control groups charge in nanoseconds, softirq work in the daemon's context included (unless the kernel was built with
//! `CONFIG_IRQ_TIME_ACCOUNTING`). Version 2 is asked first, since its cpu.stat needs no controller and so works beside version 1,
//! then version 1's cpuacct, then the scheduler's own figures in /proc, which lose what ended children used.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::stats::now_nanos;

const PREFIX: &str = "as-router-bench-";

/// Where the CPU time of one daemon is written down.
#[derive(Debug)]
pub(crate) enum Account {
    /// cgroup v2: cpu.stat
    Group(PathBuf),
    /// cgroup v1: cpuacct.usage
    CpuAcct(PathBuf),
    /// /proc/PID/task/TID/schedstat of the living
    Tasks,
    /// Nobody asks.
    None,
}

impl Account {
    /// A new account; falls back as the module says.
    pub(crate) fn open(name: &str) -> Self {
        // The process id would not be unique: it is counted from 1 in each run.
        let name = format!("{PREFIX}{}-{name}", now_nanos());
        if let Some(group) = mount_point("cgroup2", "").and_then(|mount| make(&mount, &name, "cpu.stat")) {
            return Self::Group(group);
        }
        match mount_point("cgroup", "cpuacct").and_then(|mount| make(&mount, &name, "cpuacct.usage")) {
            Some(group) => Self::CpuAcct(group),
            None => Self::Tasks,
        }
    }

    /// The directory to join.
    pub(crate) fn group(&self) -> Option<&Path> {
        match self {
            Self::Group(path) | Self::CpuAcct(path) => Some(path),
            Self::Tasks | Self::None => None,
        }
    }

    /// One phrase for the report.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Group(_) => "cgroup v2 cpu.stat",
            Self::CpuAcct(_) => "cgroup v1 cpuacct.usage",
            Self::Tasks => "/proc schedstat (children that ended are not counted)",
            Self::None => "none",
        }
    }

    /// Microseconds used, by `pid` and its children or by the group.
    pub(crate) fn micros(&self, pid: u32) -> Result<u64> {
        match self {
            Self::Group(path) => {
                let text = fs::read_to_string(path.join("cpu.stat"))?;
                let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
                usage
                    .context("cpu.stat has no usage_usec")?
                    .parse()
                    .context("usage_usec is no number")
            }
            Self::CpuAcct(path) => Ok(fs::read_to_string(path.join("cpuacct.usage"))?.trim().parse::<u64>()? / 1000),
            Self::Tasks => Ok(descendants(pid).into_iter().map(task_nanos).sum::<u64>() / 1000),
            Self::None => bail!("this process has no account"),
        }
    }

    /// Removes the group; its members must be gone.
    pub(crate) fn close(&self) {
        if let Some(path) = self.group() {
            let _ = fs::remove_dir(path);
        }
    }
}

/// `pid` and all its descendants, parents first.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        for task in fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
    }
    found
}

/// Proportional set size in bytes: pages that processes share are divided among them.
pub(crate) fn memory(pid: u32) -> Result<u64> {
    let text = match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        // It has ended since it was found.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => return Ok(0),
        text => text.context("cannot read the daemon's memory")?,
    };
    let pss = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .context("smaps_rollup has no Pss")?;
    Ok(pss.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// Removes empty groups that killed runs have left.
pub(crate) fn sweep() {
    for mount in [mount_point("cgroup2", ""), mount_point("cgroup", "cpuacct")]
        .into_iter()
        .flatten()
    {
        for entry in fs::read_dir(mount).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

fn task_nanos(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let first = |text: String| {
        text.split_whitespace()
            .next()
            .and_then(|number| number.parse::<u64>().ok())
    };
    tasks
        .filter_map(|task| first(fs::read_to_string(task.path().join("schedstat")).ok()?))
        .sum()
}

fn make(mount: &Path, name: &str, figure: &str) -> Option<PathBuf> {
    let group = mount.join(name);
    fs::create_dir(&group).ok()?;
    if group.join(figure).exists() {
        return Some(group);
    }
    let _ = fs::remove_dir(&group);
    None
}

/// The first mount of a file system type with this option, from /proc/self/mounts.
fn mount_point(kind: &str, option: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, found, options) = (fields.next()?, fields.next()?, fields.next()?);
        (found == kind && options.split(',').any(|one| option.is_empty() || one == option)).then(|| PathBuf::from(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_and_descendants() {
        let pid = std::process::id();
        assert!(memory(pid).unwrap() > 100_000);
        assert_eq!(descendants(pid).first(), Some(&pid));
        assert!(Account::Tasks.micros(pid).is_ok());
    }
}
