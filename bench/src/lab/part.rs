//! Load generators as processes of the lab, on the core that is not the daemon's.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::{LOAD_CORE, Lab, Net, program};
use crate::load::{Mode, Options, Report};

/// Runs a load to its end.
pub(crate) fn load(lab: &Lab, net: Net, options: &Options) -> Result<Report> {
    let text = output(spawn(lab, net, options)?)?;
    serde_json::from_str(&text).with_context(|| format!("a load generator said {text:?}"))
}

/// Repeats one connection until it succeeds; gives the time, in nanoseconds since 1970. `begin` runs once the load is up.
pub(crate) fn ready<T>(lab: &Lab, net: Net, options: &Options, begin: impl FnOnce() -> Result<T>) -> Result<(T, u128)> {
    let child = spawn(
        lab,
        net,
        &Options {
            mode: Mode::Ready,
            ..options.clone()
        },
    )?;
    let begun = begin()?;
    Ok((begun, output(child)?.trim().parse()?))
}

/// Opens idle connections, calls `look` while they are open, and closes them.
pub(crate) fn hold<T>(lab: &Lab, net: Net, options: &Options, look: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut child = spawn(lab, net, options)?;
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().context("no output")?);
    output.read_line(&mut line)?;
    if line.trim().parse() != Ok(options.connections) {
        child.wait()?;
        bail!("could not hold {} connections", options.connections);
    }
    let seen = look();
    drop(child.stdin.take());
    child.wait()?;
    seen
}

/// `bench enter`: the way of every process into its namespace and onto its core.
pub(super) fn enter() -> Result<Command> {
    let mut command = Command::new(program()?);
    command.arg("enter");
    Ok(command)
}

fn spawn(lab: &Lab, net: Net, options: &Options) -> Result<Child> {
    let this = program()?;
    let mode = options.mode.to_possible_value().context("a mode has a name")?;
    let mut command = enter()?;
    command
        .arg("--net")
        .arg(lab.net(net))
        .args(["--cpu", &LOAD_CORE.to_string(), "--", &this]);
    command.args([
        "load",
        mode.get_name(),
        "--to",
        &options.to.to_string(),
        "--name",
        &options.name,
    ]);
    command.args([
        "--connections",
        &options.connections.to_string(),
        "--rate",
        &options.rate.to_string(),
    ]);
    command.args([
        "--seconds",
        &options.seconds.to_string(),
        "--max",
        &options.max.to_string(),
    ]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a load generator")
}

fn output(mut child: Child) -> Result<String> {
    let mut text = String::new();
    child.stdout.take().context("no output")?.read_to_string(&mut text)?;
    let status = child.wait()?;
    if !status.success() {
        bail!("a load generator failed: {status}");
    }
    Ok(text)
}
