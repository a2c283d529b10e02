//! A session: check, create, attach, wait, undo, in one straight line.

mod containers;
mod directory;
mod failure;
mod output;
mod run;
mod sweep;
mod undo;

pub(crate) use directory::{SessionDir, runtime_dir};
pub(crate) use failure::Cause;
pub(crate) use output::printable;
pub(crate) use run::{Ended, Job, run};
pub(crate) use undo::undo_by_label;
