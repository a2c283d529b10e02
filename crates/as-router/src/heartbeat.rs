//! A short timer that runs while connections come in, so that all others cost no system call.
//!
//! tokio wakes its driver through an eventfd whenever a timer is set that is due before every other one, even from the
//! driver's own thread: one write and one wake-up per deadline, three of each per short connection. While a timer is
//! pending that is due sooner than any deadline, none of that happens. When no connection has come for a period it
//! stops: an idle router does not wake up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shorter than every deadline of a connection but the head start of a second address.
const PERIOD: Duration = Duration::from_millis(500);

static RUNNING: AtomicBool = AtomicBool::new(false);
static WANTED: AtomicBool = AtomicBool::new(false);

/// To be called when a connection comes in.
pub(crate) fn keep_going() {
    WANTED.store(true, Ordering::Relaxed);
    if !RUNNING.swap(true, Ordering::Relaxed) {
        tokio::spawn(run());
    }
}

async fn run() {
    while WANTED.swap(false, Ordering::Relaxed) {
        tokio::time::sleep(PERIOD).await;
    }
    RUNNING.store(false, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stops_when_nothing_comes_and_starts_again() {
        for _ in 0..2 {
            keep_going();
            keep_going();
            tokio::time::sleep(PERIOD / 2).await;
            assert!(RUNNING.load(Ordering::Relaxed));
            tokio::time::sleep(PERIOD * 3).await;
            assert!(!RUNNING.load(Ordering::Relaxed));
        }
    }
}
