//! Names to vetted addresses, through the name servers and hosts file of the container.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use allowlist::{AddressPolicy, HostName, Refusal};
use hickory_proto::rr::{Name, RData, RecordType};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolveHosts, ServerOrderingStrategy};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use tokio::time::timeout;

use super::cache::Cache;

/// How long an A answer waits for the AAAA one (RFC 8305 section 3, "Resolution Delay").
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// Per name server and attempt; two attempts with two servers still end within the deadline of a connection.
const SERVER_TIMEOUT: Duration = Duration::from_secs(3);

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";

/// The resolver of the router. It is asked only when a connection needs a name that the allowlist allows.
pub(crate) struct Resolver {
    policy: AddressPolicy,
    cache: Mutex<Cache>,
    system: Mutex<Option<System>>,
}

/// hickory's resolver as made from the system's files, and what these files were then.
struct System {
    stamp: [Option<SystemTime>; 2],
    resolver: TokioResolver,
}

impl Resolver {
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        Self {
            policy,
            cache: Mutex::default(),
            system: Mutex::default(),
        }
    }

    /// The addresses of `name` that may be dialled, at least one.
    ///
    /// # Errors
    /// [`Refusal::ResolveFailed`], [`Refusal::NoAddress`] or [`Refusal::AddressDenied`].
    pub(crate) async fn resolve(&self, name: &HostName) -> Result<Arc<[IpAddr]>, Refusal> {
        if let Some(addresses) = self.known(name) {
            return Ok(addresses);
        }
        let resolver = self.system().map_err(|error| {
            tracing::warn!(%error, "cannot read the resolver's configuration");
            Refusal::ResolveFailed
        })?;
        let found = look_up(&resolver, name).await?;
        let vetted: Vec<IpAddr> = found
            .addresses
            .iter()
            .copied()
            .filter(|&address| self.policy.vet(address, is_own).is_ok())
            .collect();
        if vetted.is_empty() {
            return Err(Refusal::AddressDenied);
        }
        let vetted: Arc<[IpAddr]> = vetted.into();
        let now = Instant::now();
        lock(&self.cache).put(
            name.clone(),
            Arc::clone(&vetted),
            found.valid_until.saturating_duration_since(now),
            now,
        );
        Ok(vetted)
    }

    /// The vetted addresses of an earlier answer that is still valid.
    pub(crate) fn known(&self, name: &HostName) -> Option<Arc<[IpAddr]>> {
        lock(&self.cache).get(name, Instant::now())
    }

    /// Forgets all answers: after a reload, what was learnt under the old list is asked again.
    pub(crate) fn forget(&self) {
        lock(&self.cache).clear();
    }

    /// hickory's resolver for the files as they are now: a laptop changes its name servers while a session runs.
    fn system(&self) -> Result<TokioResolver, NetError> {
        let stamp = [RESOLV_CONF, HOSTS].map(modified);
        let mut system = lock(&self.system);
        if let Some(system) = system.as_ref()
            && system.stamp == stamp
        {
            return Ok(system.resolver.clone());
        }
        let mut builder = TokioResolver::builder_tokio()?;
        let options = builder.options_mut();
        options.cache_size = 0; // ours is bounded, and holds what was vetted
        options.use_hosts_file = ResolveHosts::Always;
        options.timeout = SERVER_TIMEOUT;
        options.attempts = 2;
        // Servers in the order of the file, one at a time: with two at once, a public server's NXDOMAIN would beat the
        // internal server's answer for an internal name.
        options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
        options.num_concurrent_reqs = 1;
        let resolver = builder.build()?;
        *system = Some(System {
            stamp,
            resolver: resolver.clone(),
        });
        Ok(resolver)
    }
}

struct Found {
    addresses: Vec<IpAddr>,
    valid_until: Instant,
}

/// A and AAAA at once, in the order in which to dial them.
async fn look_up(resolver: &TokioResolver, name: &HostName) -> Result<Found, Refusal> {
    // Absolute, so that no search domain is ever appended: the name that was allowed is the name that is asked.
    let absolute = Name::from_ascii(format!("{name}.")).map_err(|_| Refusal::InvalidName)?;
    let v4 = resolver.lookup(absolute.clone(), RecordType::A);
    if !has_ipv6_route() {
        return found(v4.await, None);
    }
    let v6 = resolver.lookup(absolute, RecordType::AAAA);
    tokio::pin!(v4, v6);
    tokio::select! {
        v6 = &mut v6 => found(v4.await, Some(v6)),
        v4 = &mut v4 => match v4 {
            Ok(v4) => found(Ok(v4), timeout(RESOLUTION_DELAY, v6).await.ok()),
            Err(error) => found(Err(error), Some(v6.await)),
        },
    }
}

fn found(v4: Result<Lookup, NetError>, v6: Option<Result<Lookup, NetError>>) -> Result<Found, Refusal> {
    let mut valid_until = None::<Instant>;
    let mut lists = [Vec::new(), Vec::new()];
    let mut failed = false;
    for (lookup, list) in [v6, Some(v4)].into_iter().zip(&mut lists) {
        match lookup {
            Some(Ok(lookup)) => {
                list.extend(lookup.answers().iter().filter_map(|record| match &record.data {
                    RData::A(address) => Some(IpAddr::V4(address.0)),
                    RData::AAAA(address) => Some(IpAddr::V6(address.0)),
                    _ => None,
                }));
                let until = lookup.valid_until();
                valid_until = Some(valid_until.map_or(until, |known| known.min(until)));
            }
            Some(Err(error)) if error.is_no_records_found() => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "lookup failed");
                failed = true;
            }
            None => {}
        }
    }
    let [v6, v4] = lists;
    let addresses = interleave(&v6, &v4);
    match valid_until {
        Some(valid_until) if !addresses.is_empty() => Ok(Found { addresses, valid_until }),
        _ if failed => Err(Refusal::ResolveFailed),
        _ => Err(Refusal::NoAddress),
    }
}

/// RFC 8305 section 4: families alternate, IPv6 first.
fn interleave(v6: &[IpAddr], v4: &[IpAddr]) -> Vec<IpAddr> {
    let longer = v6.len().max(v4.len());
    (0..longer)
        .flat_map(|index| [v6.get(index), v4.get(index)])
        .flatten()
        .copied()
        .collect()
}

/// Whether the kernel has a route for IPv6 beyond the link. Connecting a datagram socket sends nothing; it only asks
/// the routing table.
fn has_ipv6_route() -> bool {
    routed_from(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))).is_ok()
}

/// Whether `address` belongs to this host: then a socket can be bound to it. (The routing table is no witness: it gives
/// an interface's first address as the source for its others.) Asked at each resolution, since interfaces come and go.
///
/// Only the kernel's word that it has no such address counts: whoever can use up the descriptors must not thereby turn
/// an own address into a foreign one.
fn is_own(address: IpAddr) -> bool {
    is_own_by(&UdpSocket::bind((address, 0)))
}

fn is_own_by(bound: &io::Result<UdpSocket>) -> bool {
    !matches!(bound, Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable)
}

fn routed_from(destination: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if destination.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Port 9 is discard (RFC 863); nothing is sent.
    socket.connect(SocketAddr::new(destination, 9))?;
    Ok(socket.local_addr()?.ip())
}

fn modified(path: &str) -> Option<SystemTime> {
    std::fs::metadata(Path::new(path))
        .and_then(|metadata| metadata.modified())
        .ok()
}

/// A poisoned lock cannot be: a panic aborts the process.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_ipv6_first() {
        let v6: Vec<IpAddr> = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().unwrap()).into();
        let v4: Vec<IpAddr> = ["203.0.113.1"].map(|text| text.parse().unwrap()).into();
        let order = interleave(&v6, &v4);
        assert_eq!(order, [v6[0], v4[0], v6[1]]);
        assert_eq!(interleave(&[], &v4), v4);
        assert_eq!(interleave(&v6, &[]), v6);
    }

    #[test]
    fn the_hosts_own_addresses_are_recognised() {
        assert!(is_own(IpAddr::from([127, 0, 0, 1])));
        assert!(!is_own(IpAddr::from([203, 0, 113, 1])));
        let out_of_descriptors = Err(rustix::io::Errno::MFILE.into());
        assert!(is_own_by(&out_of_descriptors), "unknown is not foreign");
    }
}
