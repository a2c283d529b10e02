//! The two jobs of the process, and what they have in common: how they start, reload and report.

pub(crate) mod forwarder;
pub(crate) mod router;

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use allowlist::Diagnostics;
use tokio::task::AbortHandle;

use crate::closed::NotClosed;
use crate::event::{Event, EventLog, Mode};
use crate::listener::ListenError;
use crate::policy::{LoadError, Policy};
use crate::routes::PortConflict;

/// Longest wait for connections to end by themselves after SIGTERM.
const DRAIN: Duration = Duration::from_secs(2);

/// Why router or forwarder did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Conflict(#[from] PortConflict),
    #[error(transparent)]
    NotClosed(#[from] NotClosed),
    #[error(
        "the router's address {0} is this forwarder's own: give --router the router's address in the sandbox's network"
    )]
    OwnRouter(SocketAddr),
    #[error("cannot {what}: {error}")]
    System { what: &'static str, error: io::Error },
}

pub(crate) fn reloaded(old: &Policy, new: &Policy, cut: usize) -> Event {
    let texts = |policy: &Policy| {
        policy
            .allowlist
            .entries()
            .map(ToString::to_string)
            .collect::<HashSet<_>>()
    };
    let (before, after) = (texts(old), texts(new));
    Event::Reloaded {
        entries: after.len(),
        added: after.difference(&before).count(),
        removed: before.difference(&after).count(),
        cut,
    }
}

pub(crate) fn reload_failed(error: &StartError) -> Event {
    let mut message = format!("the old allowlist stays in force: {error}");
    if let StartError::Load(LoadError::Faults(faults)) = error {
        message.push('\n');
        message.push_str(&faults.render(false));
    }
    Event::Fault {
        code: "reload-failed",
        message,
    }
}

pub(crate) fn report_warnings(log: &EventLog, warnings: &Diagnostics) {
    for warning in warnings.iter() {
        let message = format!("{}:{}: {}", warnings.file(), warning.line, warning.message);
        log.report(&Event::Fault {
            code: warning.code.as_str(),
            message,
        });
    }
}

pub(crate) fn report_ready(log: &EventLog, mode: Mode, entries: usize, listeners: Vec<String>) {
    let ready = Event::Ready {
        mode,
        entries,
        listeners,
        version: env!("CARGO_PKG_VERSION"),
    };
    // Whoever started the process waits for this line.
    log.report_and_flush(&ready);
}

pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    tokio::spawn(task).abort_handle()
}
