//! Counts operations, keeps their latencies, and says when it is enough.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::{Options, Report};
use crate::stats::percentile;

pub(super) struct Tally {
    start: Instant,
    deadline: Instant,
    max: u64,
    bytes: Cell<u64>,
    errors: Cell<u64>,
    error: RefCell<Option<String>>,
    latencies: RefCell<Vec<u32>>,
}

impl Tally {
    pub(super) fn new(options: &Options) -> Self {
        let start = Instant::now();
        Self {
            start,
            deadline: start + Duration::from_secs_f64(options.seconds),
            max: options.max,
            bytes: Cell::new(0),
            errors: Cell::new(0),
            error: RefCell::new(None),
            latencies: RefCell::new(Vec::with_capacity(1 << 18)),
        }
    }

    /// Whether there is time and work left.
    pub(super) fn more(&self) -> bool {
        Instant::now() < self.deadline && (self.latencies.borrow().len() as u64) < self.max
    }

    /// One operation has ended well.
    pub(super) fn done(&self, since: Instant) {
        self.latencies
            .borrow_mut()
            .push(u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX));
    }

    /// So many bytes have been moved.
    pub(super) fn moved(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Counts a failure, and keeps the first one's words.
    pub(super) fn note(&self, result: Result<()>) {
        if let Err(error) = result {
            self.errors.set(self.errors.get() + 1);
            self.error.borrow_mut().get_or_insert_with(|| format!("{error:#}"));
        }
    }

    pub(super) fn report(&self) -> Report {
        let mut latencies = self.latencies.take();
        latencies.sort_unstable();
        Report {
            operations: latencies.len() as u64,
            errors: self.errors.get(),
            bytes: self.bytes.get(),
            seconds: self.start.elapsed().as_secs_f64(),
            p50: percentile(&latencies, 0.5),
            p99: percentile(&latencies, 0.99),
            error: self.error.take(),
        }
    }
}

/// Paces one worker of `options.connections` so that all together keep `options.rate`; `None`: no pause.
pub(super) fn pacer(options: &Options, number: usize) -> Option<Interval> {
    let rate = u32::try_from(options.rate).ok().filter(|rate| *rate > 0)?;
    let workers = u32::try_from(options.connections).unwrap_or(1).max(1);
    let period = Duration::from_secs(1) * workers / rate;
    let first = tokio::time::Instant::now() + period * u32::try_from(number).unwrap_or(0) / workers;
    let mut interval = interval_at(first, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    Some(interval)
}

/// Waits for the next turn, if there are turns.
pub(super) async fn turn(pacer: &mut Option<Interval>) {
    if let Some(interval) = pacer {
        interval.tick().await;
    }
}
