//! How many connections the process can hold: derived from its descriptors, so that it never runs into that wall.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept back for DNS over TCP ([`DNS_TCP_CONNECTIONS`]), the resolver's sockets, files read on reload, the
/// runtime's own, and the second address of a Happy Eyeballs race.
const RESERVED: u64 = 32;

/// DNS over TCP: enough for every resolver library at once; a client that hoards them only harms its own sandbox.
pub(crate) const DNS_TCP_CONNECTIONS: usize = 64;

/// A connection has two sockets.
const PER_CONNECTION: u64 = 2;

/// Connections held at most, however many descriptors there are: about 64 MiB of task and socket state.
const MOST: u64 = 32_768;

/// Limits derived from `RLIMIT_NOFILE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) dns_tcp: usize,
    pub(crate) pipes: usize,
}

/// Raises the soft descriptor limit to the hard one and returns it.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let Some(hard) = limit.maximum else {
        return limit.current.unwrap_or(u64::MAX);
    };
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(hard),
            maximum: Some(hard),
        },
    ) {
        Ok(()) => hard,
        Err(_) => limit.current.unwrap_or(hard),
    }
}

impl Limits {
    /// Shares `descriptors` out after `listeners` are open. Pure.
    pub(crate) fn share(descriptors: u64, listeners: usize) -> Self {
        // Each listener, and one connection that waits behind it for a place.
        let free = descriptors
            .saturating_sub(listeners as u64 * 2)
            .saturating_sub(RESERVED);
        let dns_tcp = (free / 8).clamp(1, DNS_TCP_CONNECTIONS as u64);
        let free = free.saturating_sub(dns_tcp);
        // A pipe has two descriptors; where there are few, copying does.
        let pipes = (free / 16).min(64);
        let free = free.saturating_sub(pipes * 2);
        let connections = (free / PER_CONNECTION).clamp(1, MOST);
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Self {
            connections: count(connections),
            dns_tcp: count(dns_tcp),
            pipes: count(pipes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_never_exceed_the_descriptors() {
        for descriptors in [0, 1, 64, 100, 256, 1024, 4096, 20_000, 1_048_576, u64::MAX] {
            for listeners in [3, 20, 5000] {
                let limits = Limits::share(descriptors, listeners);
                assert!(limits.connections >= 1 && limits.dns_tcp >= 1);
                let used = listeners * 2 + limits.connections * 2 + limits.dns_tcp + limits.pipes * 2;
                let minimum = listeners as u64 * 2 + RESERVED + 3;
                if descriptors > minimum {
                    assert!(used as u64 <= descriptors, "{descriptors} {listeners} {limits:?}");
                }
            }
        }
    }

    #[test]
    fn a_usual_machine_holds_the_promised_ten_thousand() {
        assert!(Limits::share(20_480, 10).connections >= 10_000 - 100);
        assert_eq!(Limits::share(1_048_576, 10).connections, 32_768);
    }
}
