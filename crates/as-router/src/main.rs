//! `as-router`: a sandbox's only way out.

mod check;
mod cli;
mod closed;
mod connections;
mod dns;
mod event;
mod forward;
mod heartbeat;
mod http;
mod limits;
mod listener;
mod mode;
mod policy;
mod port_owner;
mod probe;
mod relay;
mod routes;
mod service;
mod signals;
mod socket;
mod stream;
mod sys;
mod tls;
mod upstream;

use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command, CommonArgs};
use crate::event::{Event, EventLog};
use crate::mode::{StartError, forwarder, router};
use crate::policy::LoadError;

fn main() -> ExitCode {
    // Ends the process with status 2 for a usage error, 0 for --help and --version.
    let cli = Cli::parse();
    match &cli.command {
        Some(Command::Forward(args)) => serve(&args.common, |log| forwarder::run(args, log)),
        Some(Command::Probe(args)) => probe(args),
        None => match &cli.check.check {
            Some(file) => check::run(file, &cli.check),
            None => serve(&cli.router.common, |log| router::run(&cli.router, log)),
        },
    }
}

fn serve<F>(common: &CommonArgs, run: impl FnOnce(EventLog) -> F) -> ExitCode
where
    F: Future<Output = Result<(), StartError>>,
{
    if let Some(filter) = &common.debug {
        let filter = EnvFilter::new(filter);
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(stderr)
            .init();
    }
    let started = EventLog::start(common.log).and_then(|log| Ok((log, runtime()?)));
    let (log, runtime) = match started {
        Ok(started) => started,
        Err(error) => return fail(&format!("cannot start: {error}")),
    };
    report_panics(log.clone());
    let result = runtime.block_on(run(log));
    // Names that are being looked up must not hold the exit.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(StartError::Load(LoadError::Faults(faults))) => fail(&format!(
            "nothing listens until this is mended:\n{}",
            faults.render(colour())
        )),
        Err(error) => fail(&error.to_string()),
    }
}

fn probe(args: &cli::ProbeArgs) -> ExitCode {
    match runtime() {
        Ok(runtime) => match runtime.block_on(probe::run(args)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string()),
        },
        Err(error) => fail(&format!("cannot start: {error}")),
    }
}

/// One thread: a sandbox's traffic fits on a core many times over, and without locks between threads it costs least.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// A panic aborts the process (see the release profile); what remains is to say so where it is looked for.
fn report_panics(log: EventLog) {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info
            .location()
            .map_or_else(String::new, |location| format!(" at {location}"));
        let message = format!("internal error{place}; the router ends, and nothing gets through without it");
        log.report_and_flush(&Event::Fault { code: "panic", message });
        default(info);
    }));
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(stderr(), "as-router: {message}");
    ExitCode::FAILURE
}

/// Colours for a terminal, unless NO_COLOR (no-color.org) says otherwise.
fn colour() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
