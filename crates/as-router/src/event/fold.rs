//! Folds repeated refusals: the first is reported at once, the rest of a period as one count.
//!
//! Pure: the caller brings the time. A client in a retry loop, or one that probes a million names, costs bounded
//! memory and a bounded number of lines.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use allowlist::HostName;

use super::{Event, Protocol};

/// Repeats within this time become one line.
const PERIOD: Duration = Duration::from_secs(10);

/// Different refusals followed at once, about 200 bytes each; further ones are counted together by code.
const MOST: usize = 1024;

#[derive(Default)]
pub(super) struct Fold {
    seen: HashMap<Key, Count>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    code: &'static str,
    protocol: Protocol,
    name: Option<HostName>,
    port: u16,
}

struct Count {
    since: Instant,
    held_back: u64,
}

impl Fold {
    /// Whether a refusal is to be reported now; otherwise it is counted.
    pub(super) fn admit(&mut self, event: &Event, now: Instant) -> bool {
        let Event::Refuse {
            code,
            protocol,
            name,
            port,
            ..
        } = event
        else {
            return true;
        };
        let mut key = Key {
            code,
            protocol: *protocol,
            name: name.clone(),
            port: *port,
        };
        if self.seen.len() >= MOST && !self.seen.contains_key(&key) {
            // One row for all that no longer fit: it has no name.
            key.name = None;
        }
        if let Some(count) = self.seen.get_mut(&key) {
            count.held_back += 1;
            return false;
        }
        self.seen.insert(
            key,
            Count {
                since: now,
                held_back: 0,
            },
        );
        true
    }

    /// The counts whose period is over.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Event> {
        let mut due = Vec::new();
        self.seen.retain(|key, count| {
            if now.saturating_duration_since(count.since) < PERIOD {
                return true;
            }
            if count.held_back == 0 {
                return false;
            }
            due.push(repeated(key, count.held_back));
            // It goes on: the next period starts now, with nothing held back.
            *count = Count {
                since: now,
                held_back: 0,
            };
            true
        });
        due
    }

    /// All counts, at the end.
    pub(super) fn finish(&mut self) -> Vec<Event> {
        let counted = std::mem::take(&mut self.seen)
            .into_iter()
            .filter(|(_, count)| count.held_back > 0);
        counted.map(|(key, count)| repeated(&key, count.held_back)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

fn repeated(key: &Key, times: u64) -> Event {
    Event::Refuse {
        code: key.code,
        protocol: key.protocol,
        name: key.name.clone(),
        port: key.port,
        repeated: Some(times),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allowlist::Refusal;

    fn refusal(name: &str) -> Event {
        let name = HostName::from_wire(name.as_bytes()).ok();
        Event::refuse(Refusal::NameNotAllowed, Protocol::Dns, name, 53)
    }

    fn times(event: &Event) -> Option<u64> {
        match event {
            Event::Refuse { repeated, .. } => *repeated,
            _ => None,
        }
    }

    #[test]
    fn the_first_is_reported_and_the_rest_counted() {
        let now = Instant::now();
        let mut fold = Fold::default();
        assert!(fold.admit(&refusal("a.example"), now));
        for _ in 0..5 {
            assert!(!fold.admit(&refusal("a.example"), now));
        }
        assert!(fold.admit(&refusal("b.example"), now), "another name is another row");
        assert!(fold.expire(now).is_empty());
        let due = fold.expire(now + PERIOD);
        assert_eq!(due.iter().map(times).collect::<Vec<_>>(), [Some(5)]);
        // a.example is still followed and b.example forgotten; a quiet period later both are.
        assert!(!fold.is_empty());
        assert!(fold.expire(now + PERIOD * 2).is_empty());
        assert!(fold.is_empty());
    }

    #[test]
    fn a_flood_of_names_is_bounded_and_nothing_is_lost() {
        let now = Instant::now();
        let mut fold = Fold::default();
        let total = MOST as u64 * 3;
        let at_once = (0..total)
            .filter(|n| fold.admit(&refusal(&format!("n{n}.example")), now))
            .count() as u64;
        assert!(fold.seen.len() <= MOST + 1);
        let later: u64 = fold.finish().iter().filter_map(times).sum();
        assert_eq!(at_once + later, total);
    }
}
