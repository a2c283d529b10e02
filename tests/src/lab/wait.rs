//! Waiting for something to become true, never for a time to pass.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// A time limit in seconds, stretched by `AS_LAB_PATIENCE` (2 unless set): limits end what hangs, and a machine that is
/// busy with something else hangs nothing.
#[must_use]
pub fn limit(seconds: u64) -> Duration {
    static PATIENCE: OnceLock<u64> = OnceLock::new();
    let patience = PATIENCE.get_or_init(|| {
        let set = std::env::var("AS_LAB_PATIENCE").ok().and_then(|text| text.parse().ok());
        set.unwrap_or(2)
    });
    Duration::from_secs(seconds * patience)
}

/// Tries `probe` until it gives a value; panics with `what` when `seconds` have passed.
///
/// For what has no event to wait on (a foreign server's port, a file): 10 ms between tries.
pub fn until<T>(seconds: u64, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit(seconds);
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "waited {:?} in vain for {what}",
            limit(seconds)
        );
        thread::sleep(Duration::from_millis(10));
    }
}
