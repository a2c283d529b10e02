//! Waiting for something to become true, never for a time to pass.

use std::thread;
use std::time::{Duration, Instant};

/// Tries `probe` until it gives a value; panics with `what` when `seconds` have passed.
///
/// For what has no event to wait on (a foreign server's port, a file): 10 ms between tries.
pub fn until<T>(seconds: u64, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {seconds} s in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
