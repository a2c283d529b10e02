//! The user's side of the command: terminal or pipes, and the bytes between them and podman.

mod pump;
mod raw_mode;

use std::collections::BTreeMap;
use std::io::{stdin, stdout};

use rustix::termios::{isatty, tcgetwinsize};

pub(crate) use pump::{Pump, PumpEnd};
pub(crate) use raw_mode::RawMode;

/// Whether the command gets a terminal: as with `podman run -it`, only if both ends of ours are one.
pub(crate) fn is_interactive() -> bool {
    isatty(stdin()) && isatty(stdout())
}

/// The size of the terminal in columns and rows, if it has one.
pub(crate) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// What a program has to know about the terminal it talks to. Nothing else of the environment is handed on.
pub(crate) fn environment(interactive: bool) -> BTreeMap<&'static str, String> {
    let names: &[&str] = if interactive {
        &["TERM", "COLORTERM", "NO_COLOR"]
    } else {
        &[]
    };
    let read = |name: &&'static str| Some((*name, std::env::var(name).ok().filter(|value| !value.is_empty())?));
    names.iter().filter_map(read).collect()
}
