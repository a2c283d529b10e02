//! What grows with what.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::lab::Lab;

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// The as-router binary to measure
    #[arg(long, default_value = "target/x86_64-unknown-linux-gnu/release/as-router")]
    router: PathBuf,
}

/// Measures and reports.
pub(crate) fn run(_lab: &Lab, options: &Options) -> Result<()> {
    anyhow::bail!("not yet: {}", options.router.display())
}
