//! How long each step took (`AGENT_SANDBOX_TRACE=1`).

use std::cell::RefCell;
use std::fmt::Write as _;
use std::future::Future;
use std::time::{Duration, Instant};

/// A clock that remembers steps. Printed only at the end, since the screen belongs to the command meanwhile.
#[derive(Debug)]
pub(crate) struct Trace {
    enabled: bool,
    origin: Instant,
    steps: RefCell<Vec<Step>>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    from: Duration,
    to: Duration,
}

impl Trace {
    /// Starts the clock.
    pub(crate) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            origin: Instant::now(),
            steps: RefCell::default(),
        }
    }

    /// Does a step and remembers when it began and ended.
    pub(crate) async fn step<F: Future>(&self, name: &'static str, work: F) -> F::Output {
        let from = self.origin.elapsed();
        let done = work.await;
        self.steps.borrow_mut().push(Step {
            name,
            from,
            to: self.origin.elapsed(),
        });
        done
    }

    /// The steps in the order in which they began, one a line: when, how long, what. Steps overlap.
    pub(crate) fn report(&self) -> Option<String> {
        if !self.enabled {
            return None;
        }
        let mut text = String::new();
        let mut steps = self.steps.borrow_mut();
        steps.sort_by_key(|step| step.from);
        for Step { name, from, to } in steps.iter() {
            let _ = writeln!(
                text,
                "agent-sandbox: {:7.1} ms +{:7.1} ms  {name}",
                millis(*from),
                millis(*to - *from)
            );
        }
        let _ = writeln!(text, "agent-sandbox: {:7.1} ms in all", millis(self.origin.elapsed()));
        Some(text)
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
