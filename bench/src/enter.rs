//! Becomes another program in a network namespace, on one core and in a control group.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};

use crate::stats::now_nanos;

/// Where and how the command runs.
#[derive(Args)]
pub(crate) struct Options {
    /// File of the network namespace
    #[arg(long)]
    net: PathBuf,
    /// Core to stay on
    #[arg(long)]
    cpu: usize,
    /// Control group directory to join
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// File that receives the time just before exec, in nanoseconds since 1970
    #[arg(long)]
    stamp: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Does not return unless it fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let namespace = File::open(&options.net).with_context(|| format!("cannot open {}", options.net.display()))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .context("cannot enter the namespace")?;
    let mut cores = CpuSet::new();
    cores.set(options.cpu);
    sched_setaffinity(None, &cores).with_context(|| format!("cannot stay on core {}", options.cpu))?;
    if let Some(group) = &options.cgroup {
        fs::write(group.join("cgroup.procs"), "0").with_context(|| format!("cannot join {}", group.display()))?;
    }
    // 10,000 relayed connections are 20,000 descriptors.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )?;
    let Some((program, arguments)) = options.command.split_first() else {
        bail!("no command")
    };
    if let Some(stamp) = &options.stamp {
        fs::write(stamp, now_nanos().to_string())?;
    }
    Err(Command::new(program).args(arguments).exec()).with_context(|| format!("cannot execute {program}"))
}
