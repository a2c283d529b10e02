//! Vetted addresses by name, for as long as their TTL says.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allowlist::HostName;

/// Names kept. A `.suffix` entry lets the sandbox ask for names without end; these stay within about 300 kB.
const MOST: usize = 1024;

/// A TTL of 0 still serves the connections that a client opens in one go; a change of address within the hour reaches
/// a session that runs for days.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// A bounded cache. Pure: the caller brings the time.
#[derive(Default)]
pub(super) struct Cache {
    names: HashMap<HostName, Cached>,
}

struct Cached {
    addresses: Arc<[IpAddr]>,
    until: Instant,
}

impl Cache {
    pub(super) fn get(&self, name: &HostName, now: Instant) -> Option<Arc<[IpAddr]>> {
        let cached = self.names.get(name)?;
        (now < cached.until).then(|| Arc::clone(&cached.addresses))
    }

    pub(super) fn put(&mut self, name: HostName, addresses: Arc<[IpAddr]>, ttl: Duration, now: Instant) {
        if self.names.len() >= MOST && !self.names.contains_key(&name) {
            self.names.retain(|_, cached| now < cached.until);
            if self.names.len() >= MOST {
                self.names.clear();
            }
        }
        let until = now + ttl.clamp(SHORTEST, LONGEST);
        self.names.insert(name, Cached { addresses, until });
    }

    pub(super) fn clear(&mut self) {
        self.names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::from_wire(text.as_bytes()).unwrap()
    }

    fn addresses() -> Arc<[IpAddr]> {
        Arc::from([IpAddr::from([203, 0, 113, 1])])
    }

    #[test]
    fn an_answer_lives_as_long_as_its_ttl_within_bounds() {
        let now = Instant::now();
        for (ttl, lives) in [(0, 1), (30, 30), (300, 300), (86400, 300)] {
            let mut cache = Cache::default();
            cache.put(name("a.example"), addresses(), Duration::from_secs(ttl), now);
            let end = now + Duration::from_secs(lives);
            assert!(
                cache.get(&name("a.example"), end - Duration::from_millis(1)).is_some(),
                "ttl {ttl}"
            );
            assert!(cache.get(&name("a.example"), end).is_none(), "ttl {ttl}");
        }
    }

    #[test]
    fn a_flood_of_names_is_bounded() {
        let now = Instant::now();
        let mut cache = Cache::default();
        for number in 0..MOST * 3 {
            cache.put(
                name(&format!("n{number}.example")),
                addresses(),
                Duration::from_secs(60),
                now,
            );
            assert!(cache.names.len() <= MOST);
        }
        let last = format!("n{}.example", MOST * 3 - 1);
        assert!(cache.get(&name(&last), now).is_some());
    }
}
