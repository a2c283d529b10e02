//! The one world of a run: who is where, which names exist.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};

use super::certs::Authority;
use super::netns::Namespace;
use super::process::Process;
use super::router::{Forwarder, Router, RouterSetup};
use super::servers;
use super::wait;

/// The client's address on the session network.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
/// The shared router on the session network.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// nginx.
pub const WEB: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 10);
/// sshd.
pub const SSH: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 22);
/// PostgreSQL.
pub const POSTGRES: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 32);
/// unbound, the router's resolver.
pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 53);
/// An address of the egress network that nobody has: dialling it gets no answer.
pub const NOBODY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 99);

/// The shared router's policy.
pub const ALLOWLIST: &str = "\
# the names of the lab
web.example
api.example
plain.example
git.example
git.example:22
db.example:5432
echo.example:7000
closed.example
closed.example:7001
unreachable.example
MiXed.Example          # any case
b\u{fc}cher.example
under_score.example
a.b.c.deep.example
.slot.example
.bad.example
.dns.example
missing.dns.example:9999
";

/// Everything that is started once.
#[derive(Debug)]
pub struct World {
    /// Where the sandboxed programs run: the pod.
    pub client: Namespace,
    /// Where routers run.
    pub router_side: Namespace,
    /// Where the servers run.
    pub origin: Namespace,
    /// The CA that every client trusts.
    pub authority: Authority,
    /// The shared router.
    pub router: Router,
    /// The forwarder in the pod.
    pub forwarder: Forwarder,
    _servers: Vec<Process>,
}

/// The world, made at first use.
///
/// # Panics
/// When something in it does not start.
pub fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(World::new)
}

impl World {
    fn new() -> Self {
        let authority = Authority::new();
        let (client, router_side, origin) = networks();
        let servers = servers::start(&origin, &authority);
        let router = RouterSetup::new(&router_side, ROUTER).allow(ALLOWLIST).start();
        let forwarder = Forwarder::start(&client, &router, &[]);
        Self {
            client,
            router_side,
            origin,
            authority,
            router,
            forwarder,
            _servers: servers,
        }
    }

    /// A router of one's own, on an address of its own beside the shared one.
    #[must_use]
    pub fn router(&self, allowlist: &str) -> RouterSetup {
        let lease = Lease::take();
        let address = Ipv4Addr::new(192, 0, 2, lease.0);
        self.router_side.ip(&format!("addr replace {address}/24 dev session"));
        RouterSetup::new(&self.router_side, address)
            .keep(lease)
            .allow(allowlist)
    }

    /// Another pod with the session network only, for a forwarder of one's own.
    #[must_use]
    pub fn pod(&self, nameserver: Ipv4Addr) -> Namespace {
        static NEXT: AtomicU8 = AtomicU8::new(11);
        let last = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(last < 60, "out of pod addresses");
        let pod = Namespace::new(&format!("pod{last}"), nameserver);
        pod.plug_into(&self.router_side, "session", Ipv4Addr::new(192, 0, 2, last));
        pod
    }

    /// A name and an address on the internet that no other test uses. The zone file has them all.
    #[must_use]
    pub fn slot(&self) -> Slot {
        static NEXT: AtomicU8 = AtomicU8::new(Slot::FIRST);
        let last = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(last <= Slot::LAST, "out of slots");
        Slot {
            name: format!("s{last}.slot.example"),
            address: Ipv4Addr::new(203, 0, 113, last),
        }
    }
}

/// The last octet of a router's address; free again when the router is gone.
#[derive(Debug)]
pub struct Lease(u8);

/// Octets that were given back.
static FREE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

impl Lease {
    fn take() -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(101);
        let used = FREE.lock().unwrap().pop();
        let last = used.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        assert!(last < 250, "out of router addresses");
        Self(last)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        FREE.lock().unwrap().push(self.0);
    }
}

/// A place on the internet for a server inside the test itself.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its name; `.slot.example` is on the shared allowlist.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
}

impl Slot {
    /// Last octet of the first slot's address.
    pub const FIRST: u8 = 70;
    /// Last octet of the last slot's address.
    pub const LAST: u8 = 250;

    /// Listens there.
    #[must_use]
    pub fn listen(&self, port: u16) -> TcpListener {
        listen(&world().origin, self.address, port)
    }
}

/// Listens on `address` in `namespace`. A listener that was closed a moment ago may live on in a child that another
/// test has forked and that has not reached its exec yet.
#[must_use]
pub fn listen(namespace: &Namespace, address: impl Into<IpAddr>, port: u16) -> TcpListener {
    let address = SocketAddr::new(address.into(), port);
    wait::until(10, &format!("listening on {address}"), || {
        match namespace.enter(|| TcpListener::bind(address)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => None,
            result => Some(result.unwrap_or_else(|error| panic!("listen on {address}: {error}"))),
        }
    })
}

fn networks() -> (Namespace, Namespace, Namespace) {
    let client = Namespace::new("client", ROUTER);
    let router = Namespace::new("router", RESOLVER);
    let origin = Namespace::new("origin", RESOLVER);

    // Fixed addresses: a bridge otherwise takes the lowest of its ports, and each pod plugged in during a run may change it
    // under the neighbour tables of the others, which then reach nobody for half a minute.
    router.ip("link add session address 02:00:00:00:00:01 type bridge");
    router.ip("link set session up");
    router.ip(&format!("addr add {ROUTER}/24 dev session"));
    client.plug_into(&router, "session", CLIENT);

    origin.ip("link add egress address 02:00:00:00:00:02 type bridge");
    origin.ip("link set egress up");
    origin.ip("addr add 198.51.100.1/24 dev egress");
    // All of the network is then local.
    origin.ip("addr add 203.0.113.0/24 dev lo");
    origin.ip("addr add 2001:db8:1::10/128 dev lo nodad");
    router.plug_into(&origin, "egress", Ipv4Addr::new(198, 51, 100, 2));
    router.ip("route add 203.0.113.0/24 via 198.51.100.1");
    // nodad: an address must be usable at once.
    origin.ip("addr add 2001:db8::1/64 dev egress nodad");
    router.ip("addr add 2001:db8::2/64 dev eth0 nodad");
    router.ip("route add 2001:db8:1::/64 via 2001:db8::1");
    (client, router, origin)
}
