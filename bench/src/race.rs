//! The race: every work, every contender in turn, and again, until each has had all its runs.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::process::{Resource, getrlimit};

use crate::lab::{self, Lab, Role};
use crate::load::{Mode, Options as Load};
use crate::peers::{Contender, Running, Settings, image_bytes};
use crate::report::{Progress, Race, Row, write_race};
use crate::works::{Figure, Kind, WORKS, Work};

/// What to race.
#[derive(Args)]
pub(crate) struct Options {
    /// The as-router binary to measure
    #[arg(long, default_value = "target/x86_64-unknown-linux-gnu/release/as-router")]
    router: PathBuf,
    /// Runs of each contender at each work
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only the works whose key begins so (may be repeated)
    #[arg(long)]
    work: Vec<String>,
    /// Only contenders whose name contains this (may be repeated)
    #[arg(long)]
    only: Vec<String>,
    /// Where the results go; without it, only to the terminal
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Measures and reports.
pub(crate) fn run(lab: &Lab, options: &Options) -> Result<()> {
    let wanted = |work: &&Work| options.work.is_empty() || options.work.iter().any(|key| work.key.starts_with(key));
    let works: Vec<&Work> = WORKS.iter().filter(wanted).collect();
    ensure!(!works.is_empty(), "no work has such a key");
    let router = options
        .router
        .canonicalize()
        .with_context(|| format!("no as-router at {}", options.router.display()));
    let settings = Settings::usual(router.unwrap_or_else(|_| options.router.clone()));
    let mut race = Race::new(options.runs, options.seconds);
    let mut progress = Progress::new(works.len());
    for work in works {
        progress.step(work.title);
        let rows = measure(lab, work, &settings, options, &mut race).with_context(|| format!("at {}", work.key))?;
        progress.clear();
        for row in rows {
            row.print();
            race.rows.push(row);
        }
    }
    if let Some(dir) = &options.out {
        write_race(dir, &race)?;
    }
    Ok(())
}

fn measure(lab: &Lab, work: &Work, settings: &Settings, options: &Options, race: &mut Race) -> Result<Vec<Row>> {
    let chosen = |who: &Contender| options.only.is_empty() || options.only.iter().any(|name| who.name().contains(name));
    let contenders: Vec<Contender> = work.contenders.iter().copied().filter(chosen).collect();
    match work.kind {
        Kind::Load {
            mode,
            role,
            connections,
            rate,
            figures,
        } => {
            let load = |who: Contender| Load {
                connections,
                rate,
                seconds: options.seconds,
                ..to(who, mode, role)
            };
            let mut running = start_all(lab, &contenders, settings)?;
            race.accounting = running.first().and_then(Running::accounting).or(race.accounting);
            let mut rows: Vec<Row> = figures.iter().map(|figure| Row::of_figure(work, *figure)).collect();
            for run in 0..options.runs {
                // There and back, so that nobody always follows the same one: socat leaves a thousand dead processes.
                if run > 0 {
                    running.reverse();
                }
                for one in &mut running {
                    let (report, cpu) = loaded(lab, one, &load(one.contender))?;
                    for (row, figure) in rows.iter_mut().zip(figures) {
                        row.add(one.contender, figure.of(&report, cpu, one.contender));
                    }
                }
            }
            Ok(rows)
        }
        Kind::Idle { connections } => {
            let connections = connections.min(most_connections());
            let mut row = Row::new(work, format!("memory each of {connections}"), "kB", false);
            // Memory hardly differs from run to run, and ten thousand connections take their time.
            for _ in 0..options.runs.min(3) {
                for who in &contenders {
                    row.add(*who, Some(idle(lab, *who, settings, connections)?));
                }
            }
            Ok(vec![row])
        }
        Kind::Start => {
            let mut time = Row::new(work, "exec to first answer", "ms", false);
            let mut memory = Row::new(work, "resident", "kB", false);
            for _ in 0..options.runs {
                for who in &contenders {
                    let (running, millis) = started(lab, *who, settings)?;
                    time.add(*who, Some(millis));
                    memory.add(*who, Some(kilobytes(running.memory()?)));
                }
            }
            Ok(vec![time, memory])
        }
        Kind::Image => {
            let mut row = Row::new(work, "program, libraries, modules", "kB", false);
            for who in contenders {
                row.add(who, Some(kilobytes(image_bytes(who, settings)?)));
            }
            Ok(vec![row])
        }
    }
}

/// A load of a kind for a contender.
pub(crate) fn to(who: Contender, mode: Mode, role: Role) -> Load {
    let to = match mode {
        Mode::DnsUdp | Mode::DnsTcp | Mode::DnsTcpKept => (who.address(), 53).into(),
        _ => who.target(role),
    };
    Load {
        mode,
        to,
        name: role.host().to_owned(),
        connections: 1,
        rate: 0,
        seconds: 10.0,
        max: 10_000_000,
    }
}

/// Starts a contender and waits for its first answer; gives the milliseconds between exec and that.
pub(crate) fn started(lab: &Lab, who: Contender, settings: &Settings) -> Result<(Running, f64)> {
    let first = match who {
        Contender::Dnsmasq => to(who, Mode::DnsUdp, Role::Close),
        _ => to(who, Mode::Ready, Role::Close),
    };
    if who == Contender::Dnsmasq {
        let running = who.start(lab, settings)?;
        sleep(Duration::from_millis(300));
        lab::load(lab, who.load_net(), &Load { max: 100, ..first })?;
        return Ok((running, 300.0));
    }
    let (mut running, ready) = lab::ready(lab, who.load_net(), &first, || {
        // The load is to be waiting already when the daemon begins.
        sleep(Duration::from_millis(30));
        who.start(lab, settings)
    })
    .with_context(|| format!("{} did not answer", who.name()))?;
    running.assert_alive()?;
    if who == Contender::Direct {
        return Ok((running, 0.0));
    }
    #[expect(clippy::cast_precision_loss)]
    let millis = ready.saturating_sub(running.executed()?) as f64 / 1e6;
    Ok((running, millis))
}

fn start_all(lab: &Lab, contenders: &[Contender], settings: &Settings) -> Result<Vec<Running>> {
    contenders
        .iter()
        .map(|who| Ok(started(lab, *who, settings)?.0))
        .collect()
}

/// Runs one load; gives its report and the CPU time that the daemon used for it, in microseconds.
pub(crate) fn loaded(lab: &Lab, running: &mut Running, load: &Load) -> Result<(crate::load::Report, u64)> {
    let who = running.contender;
    let before = running.cpu_micros()?;
    let report = lab::load(lab, who.load_net(), load)?;
    // The last connections are still being closed.
    sleep(Duration::from_millis(50));
    let cpu = running.cpu_micros()? - before;
    running.assert_alive().with_context(|| who.name().to_owned())?;
    ensure!(
        report.errors * 1000 <= report.operations,
        "{}: {} of {} operations failed: {}",
        who.name(),
        report.errors,
        report.errors + report.operations,
        report.error.unwrap_or_default()
    );
    Ok((report, cpu))
}

/// How many connections a relay can hold here: two descriptors each, a thousand kept back.
pub(crate) fn most_connections() -> usize {
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20);
    usize::try_from(limit / 2).unwrap_or(usize::MAX).saturating_sub(1000)
}

/// Kilobytes for each of so many idle connections.
pub(crate) fn idle(lab: &Lab, who: Contender, settings: &Settings, connections: usize) -> Result<f64> {
    let room = u32::try_from(connections)?.saturating_mul(2) + 1024;
    let (running, _) = started(
        lab,
        who,
        &Settings {
            connections: room,
            ..settings.clone()
        },
    )?;
    let before = running.memory()?;
    let load = Load {
        connections,
        ..to(who, Mode::Idle, Role::Idle)
    };
    let during = lab::hold(lab, who.load_net(), &load, || running.memory()).with_context(|| who.name().to_owned())?;
    #[expect(clippy::cast_precision_loss)]
    Ok(kilobytes(during.saturating_sub(before)) / connections as f64)
}

/// Thousands of bytes.
#[expect(clippy::cast_precision_loss)]
pub(crate) fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1000.0
}

impl Row {
    fn of_figure(work: &Work, figure: Figure) -> Self {
        let (label, unit) = figure.label();
        Self::new(work, label, unit, figure == Figure::Rate)
    }
}
