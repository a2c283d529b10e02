//! `bench race` measures as-router beside the daemons it replaces, `bench growth` measures what grows with what.
//!
//! The other subcommands are the parts that a run starts inside its own network namespaces.

mod accounting;
mod enter;
mod growth;
mod hello;
mod lab;
mod load;
mod origin;
mod peers;
mod race;
mod report;
mod splice;
mod stats;
mod works;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Side-by-side measurements of as-router and its peers (see BENCHMARKING.md).
#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// as-router, nginx, HAProxy, sniproxy, socat and dnsmasq at the same work, on the same core, in turn
    Race(race::Options),
    /// as-router against the size of the allowlist, open connections and host:port entries
    Growth(growth::Options),
    /// (part of a run) one load generator
    #[command(hide = true)]
    Load(load::Options),
    /// (part of a run) the servers that the load reaches through the measured daemon
    #[command(hide = true)]
    Origin,
    /// (part of a run) the physical floor: two threads a connection that do nothing but splice(2)
    #[command(hide = true)]
    Splice(splice::Options),
    /// (part of a run) execute a command in a network namespace, on one core, in a control group
    #[command(hide = true)]
    Enter(enter::Options),
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Race(options) => lab::inside(|lab| race::run(lab, &options)),
        Command::Growth(options) => lab::inside(|lab| growth::run(lab, &options)),
        Command::Load(options) => load::run(&options),
        Command::Origin => origin::run(),
        Command::Splice(options) => splice::run(&options),
        Command::Enter(options) => enter::run(&options),
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
