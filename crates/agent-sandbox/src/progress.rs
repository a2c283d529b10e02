//! A line that says what is being waited for, on a terminal only, gone when the wait is over.

use std::cell::Cell;
use std::future::Future;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// What takes less than this needs no explanation.
const PATIENCE: Duration = Duration::from_secs(1);

/// The line.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    shown: Cell<bool>,
}

impl Progress {
    /// Nothing is shown yet, and never anything without a terminal on standard error.
    pub(crate) fn new() -> Self {
        Self {
            terminal: stderr().is_terminal(),
            shown: Cell::new(false),
        }
    }

    /// Does `work` and says `what` takes so long once it does.
    pub(crate) async fn explain<F: Future>(&self, what: &str, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(PATIENCE) => self.show(what),
        }
        work.await
    }

    /// Shows a line in place of the last one.
    pub(crate) fn show(&self, what: &str) {
        if !self.terminal {
            return;
        }
        // What podman reports of a pull comes from the registry: no control character gets to the terminal.
        let text: String = what.chars().filter(|c| !c.is_control()).take(100).collect();
        let _ = write!(stderr(), "\r\x1b[Kagent-sandbox: {text}");
        self.shown.set(true);
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.shown.take() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
