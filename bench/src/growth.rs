//! What grows with what: the allowlist, open connections, `host:port` entries, routers side by side.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::lab::{self, Lab, Role, host_names};
use crate::load::{Mode, Options as Load};
use crate::peers::{Contender, Running, Settings, router_at};
use crate::race::{kilobytes, loaded, most_connections, started, to};
use crate::report::{Progress, number, write_growth};
use crate::stats::median;

const WHO: Contender = Contender::Router;
/// Up to the million names that the design promises to load.
const NAMES: [usize; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];
const OPEN: [usize; 5] = [0, 100, 1_000, 5_000, 10_000];
const PORTS: [usize; 4] = [10, 100, 1_000, 5_000];
const ROUTERS: [u8; 3] = [1, 4, 16];

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// The as-router binary to measure
    #[arg(long, default_value = "target/x86_64-unknown-linux-gnu/release/as-router")]
    router: PathBuf,
    /// Runs of each size
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Where the results go; without it, only to the terminal
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Medians at one size.
#[derive(Serialize, Debug)]
pub(crate) struct Point {
    /// What grows
    pub(crate) what: &'static str,
    /// How much of it there is
    pub(crate) size: usize,
    /// Name, unit and value of each figure
    pub(crate) figures: Vec<(&'static str, &'static str, f64)>,
}

/// Measures and reports.
pub(crate) fn run(lab: &Lab, options: &Options) -> Result<()> {
    let router = options
        .router
        .canonicalize()
        .with_context(|| format!("no as-router at {}", options.router.display()))?;
    let study = Study {
        lab,
        options,
        settings: Settings::usual(router),
    };
    let mut progress = Progress::new(NAMES.len() + OPEN.len() + PORTS.len() + ROUTERS.len());
    let mut points = Vec::new();
    let mut note = |what: &'static str, size: usize, measure: &dyn Fn() -> Result<Vec<Figure>>| -> Result<()> {
        progress.step(&format!("{what}: {size}"));
        let runs = (0..options.runs).map(|_| measure()).collect::<Result<Vec<_>>>();
        let point = Point {
            what,
            size,
            figures: medians(&runs.with_context(|| format!("{what}: {size}"))?),
        };
        progress.clear();
        point.print();
        points.push(point);
        Ok(())
    };
    for size in NAMES {
        note("allowlist entries", size, &|| study.names(size))?;
    }
    for size in OPEN {
        let size = size.min(most_connections());
        note("open connections", size, &|| study.open(size))?;
    }
    for size in PORTS {
        note("host:port entries", size, &|| study.ports(size))?;
    }
    for size in ROUTERS {
        note("routers side by side", size.into(), &|| study.routers(size))?;
    }
    options.out.as_ref().map_or(Ok(()), |dir| write_growth(dir, &points))
}

type Figure = (&'static str, &'static str, f64);

struct Study<'a> {
    lab: &'a Lab,
    options: &'a Options,
    settings: Settings,
}

impl Study<'_> {
    fn names(&self, size: usize) -> Result<Vec<Figure>> {
        let mut names = host_names();
        names.truncate(Role::ALL.len());
        names.extend((names.len()..size).map(|number| format!("host-{number}.team-{}.example.net", number % 1000)));
        let (mut running, millis) = started(
            self.lab,
            WHO,
            &Settings {
                names,
                ..self.settings.clone()
            },
        )?;
        let resident = kilobytes(running.memory()?);
        Ok(vec![
            ("exec to first answer", "ms", millis),
            ("resident", "kB", resident),
            (
                "CPU of a TLS connection",
                "us",
                self.cost(&mut running, Mode::Connect, Role::Close)?,
            ),
            (
                "CPU of a DNS query",
                "us",
                self.cost(&mut running, Mode::DnsUdp, Role::Close)?,
            ),
        ])
    }

    fn open(&self, size: usize) -> Result<Vec<Figure>> {
        let (mut running, _) = started(self.lab, WHO, &self.settings)?;
        let idle = Load {
            connections: size,
            ..to(WHO, Mode::Idle, Role::Idle)
        };
        lab::hold(self.lab, WHO.load_net(), &idle, || {
            Ok(vec![
                ("resident", "kB", kilobytes(running.memory()?)),
                (
                    "CPU of a 64 B echo",
                    "us",
                    self.cost(&mut running, Mode::Echo, Role::Echo)?,
                ),
                (
                    "CPU of a TLS connection",
                    "us",
                    self.cost(&mut running, Mode::Connect, Role::Close)?,
                ),
            ])
        })
    }

    fn ports(&self, size: usize) -> Result<Vec<Figure>> {
        let mut names = host_names();
        names.extend((0..size).map(|number| format!("db-{number}.example.net:5432")));
        let (mut running, millis) = started(
            self.lab,
            WHO,
            &Settings {
                names,
                ..self.settings.clone()
            },
        )?;
        Ok(vec![
            ("exec to first answer", "ms", millis),
            ("resident", "kB", kilobytes(running.memory()?)),
            (
                "CPU of a TLS connection",
                "us",
                self.cost(&mut running, Mode::Connect, Role::Close)?,
            ),
        ])
    }

    fn routers(&self, count: u8) -> Result<Vec<Figure>> {
        let (mut first, _) = started(self.lab, WHO, &self.settings)?;
        let others = (1..count)
            .map(|number| router_at(self.lab, number, &self.settings))
            .collect::<Result<Vec<_>>>()?;
        let mut all = kilobytes(first.memory()?);
        for other in &others {
            all += kilobytes(other.memory()?);
        }
        Ok(vec![
            ("resident, each", "kB", all / f64::from(count)),
            (
                "CPU of a TLS connection",
                "us",
                self.cost(&mut first, Mode::Connect, Role::Close)?,
            ),
        ])
    }

    /// CPU microseconds for each operation.
    #[expect(clippy::cast_precision_loss)]
    fn cost(&self, running: &mut Running, mode: Mode, role: Role) -> Result<f64> {
        let load = Load {
            connections: 16,
            seconds: self.options.seconds,
            ..to(WHO, mode, role)
        };
        let (report, cpu) = loaded(self.lab, running, &load)?;
        Ok(cpu as f64 / report.operations.max(1) as f64)
    }
}

/// The median of each figure over the runs.
fn medians(runs: &[Vec<Figure>]) -> Vec<Figure> {
    let first = runs.first().map(Vec::as_slice).unwrap_or_default();
    let of = |name: &str| {
        let values: Vec<f64> = runs
            .iter()
            .flatten()
            .filter(|figure| figure.0 == name)
            .map(|figure| figure.2)
            .collect();
        median(&values).unwrap_or(f64::NAN)
    };
    first.iter().map(|(name, unit, _)| (*name, *unit, of(name))).collect()
}

impl Point {
    fn print(&self) {
        let figures: Vec<String> = self
            .figures
            .iter()
            .map(|(name, unit, value)| format!("{name} {} {unit}", number(*value)))
            .collect();
        println!("{:<22} {:>9}   {}", self.what, self.size, figures.join(", "));
    }
}
