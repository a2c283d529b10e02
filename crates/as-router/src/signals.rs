//! Signals, and the duties of a process that may be PID 1 of its container.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What the process is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGHUP: read the allowlist again.
    Reload,
    /// SIGTERM or SIGINT: end. A PID 1 without a handler would ignore them.
    Stop,
}

/// The signals that are waited for. SIGPIPE is ignored by the Rust runtime: a closed log reader is an error of a write.
pub(crate) struct Signals {
    hangup: Stream,
    terminate: Stream,
    interrupt: Stream,
    child: Stream,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            child: signal(SignalKind::child())?,
        })
    }

    /// Runs `work` to its end; `None` if the process is asked to end before. A reload that is asked for meanwhile is
    /// kept for [`next`](Self::next).
    pub(crate) async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = work => Some(result),
            _ = self.terminate.recv() => None,
            _ = self.interrupt.recv() => None,
        }
    }

    pub(crate) async fn next(&mut self) -> Signal {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Signal::Stop,
                _ = self.interrupt.recv() => return Signal::Stop,
                _ = self.hangup.recv() => return Signal::Reload,
                _ = self.child.recv() => reap(),
            }
        }
    }
}

/// The router starts no process, but PID 1 inherits the orphans of its container (an interrupted `podman exec`).
fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
