//! Results: a table on the terminal while it runs, JSON and Markdown in a dated file, a chart for the README.

mod chart;
mod markdown;
mod progress;
mod row;

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::growth::Point;

pub(crate) use progress::Progress;
pub(crate) use row::{Row, number};

/// A whole race.
#[derive(Serialize, Debug)]
pub(crate) struct Race {
    /// Day of the run, UTC
    pub(crate) date: String,
    /// Processor, kernel and the peers' versions
    pub(crate) machine: Vec<String>,
    /// How CPU time was accounted
    pub(crate) accounting: Option<&'static str>,
    /// Runs of each contender at each work
    pub(crate) runs: usize,
    /// Seconds of each run
    pub(crate) seconds: f64,
    /// The figures
    pub(crate) rows: Vec<Row>,
}

impl Race {
    /// Nothing measured yet.
    pub(crate) fn new(runs: usize, seconds: f64) -> Self {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let date = now.split('T').next().unwrap_or_default().to_owned();
        Self {
            date,
            machine: markdown::machine(),
            accounting: None,
            runs,
            seconds,
            rows: Vec::new(),
        }
    }
}

/// Writes `race-DATE.json`, `race-DATE.md` and `ratios.svg` into the directory.
pub(crate) fn write_race(dir: &Path, race: &Race) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let name = format!("race-{}", race.date);
    write(
        dir,
        &format!("{name}.json"),
        &(serde_json::to_string_pretty(race)? + "\n"),
    )?;
    write(dir, &format!("{name}.md"), &markdown::race(race))?;
    write(dir, "ratios.svg", &chart::ratios(&race.rows))
}

/// Writes `growth-DATE.json` and `growth-DATE.md` into the directory.
pub(crate) fn write_growth(dir: &Path, points: &[Point]) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let date = today();
    write(
        dir,
        &format!("growth-{date}.json"),
        &(serde_json::to_string_pretty(points)? + "\n"),
    )?;
    write(dir, &format!("growth-{date}.md"), &markdown::growth(&date, points))
}

/// The day in UTC.
fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
