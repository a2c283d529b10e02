//! One line that says what is under way, on a terminal only.

use std::io::{IsTerminal, Write, stderr};

/// Counts the works.
pub(crate) struct Progress {
    total: usize,
    done: usize,
    terminal: bool,
}

impl Progress {
    /// So many works are to be done.
    pub(crate) fn new(total: usize) -> Self {
        Self {
            total,
            done: 0,
            terminal: stderr().is_terminal(),
        }
    }

    /// The next work begins.
    pub(crate) fn step(&mut self, title: &str) {
        self.done += 1;
        self.show(&format!("[{}/{}] {title} ...", self.done, self.total));
    }

    /// Makes room for a result.
    pub(crate) fn clear(&self) {
        self.show("");
    }

    fn show(&self, text: &str) {
        if self.terminal {
            // A lost progress line harms nobody.
            let _ = write!(stderr(), "\r\x1b[K{text}");
        }
    }
}
