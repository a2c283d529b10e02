//! Raw mode: every key goes to the program, and the terminal is as before afterwards, on every way out.

use std::io::{self, stdin};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// A terminal in raw mode until this is dropped.
#[derive(Debug)]
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    /// Switches the terminal on standard input to raw mode.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Drain: what the command wrote last is shown in the mode it was written for.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
    }
}
