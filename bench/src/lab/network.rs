//! Five network namespaces in a star: the router in the middle, one veth pair to each of the others.
//!
//! Daemons under test have an address each on the router's loopback interface, so that all of them can listen on 53, 80 and 443
//! at the same time and runs can take turns.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Role, command};

/// A network namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Net {
    /// The daemons under test.
    Router,
    /// The servers and the name server.
    Origin,
    /// The load.
    Client,
    /// The load and as-router's forwarder.
    Pod,
    /// The load and socat, the forwarder of before.
    SeedPod,
}

/// The name server behind the router.
pub(crate) const RESOLVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 53);
/// How many addresses 192.0.2.1 and up the router's namespace has.
pub(crate) const ROUTER_ADDRESSES: u8 = 40;

const LEAVES: [Net; 4] = [Net::Origin, Net::Client, Net::Pod, Net::SeedPod];

const SYSCTLS: [&str; 5] = [
    // Ten thousand connections a second to one address. Where it is the connecting side that closes first, its ports stay in
    // TIME_WAIT, and once half of them do, each connect(2) searches the other half for milliseconds.
    "net.ipv4.ip_local_port_range=1024 65535",
    "net.ipv4.tcp_max_tw_buckets=1000",
    "net.ipv4.tcp_max_syn_backlog=16384",
    "net.core.somaxconn=16384",
    // The direct connection goes through the router's namespace.
    "net.ipv4.ip_forward=1",
];

/// Where the namespace is mounted.
pub(super) fn file(dir: &Path, net: Net) -> PathBuf {
    dir.join(format!("net-{net:?}").to_lowercase())
}

/// Makes the namespaces, links and addresses.
pub(super) fn build(dir: &Path) -> Result<()> {
    for net in [Net::Router].iter().chain(&LEAVES) {
        let path = file(dir, *net);
        fs::write(&path, "")?;
        command("unshare", &[&format!("--net={}", path.display()), "true"])?;
        within(dir, *net, &["ip", "link", "set", "lo", "up"])?;
        for sysctl in SYSCTLS {
            within(dir, *net, &["sysctl", "-qw", sysctl])?;
        }
    }
    for (number, leaf) in LEAVES.iter().enumerate() {
        link(dir, number * 4, *leaf)?;
    }
    for number in 1..=ROUTER_ADDRESSES {
        within(
            dir,
            Net::Router,
            &["ip", "address", "add", &format!("192.0.2.{number}/32"), "dev", "lo"],
        )?;
    }
    for address in Role::ALL.iter().map(|role| role.address()).chain([RESOLVER]) {
        within(
            dir,
            Net::Origin,
            &["ip", "address", "add", &format!("{address}/32"), "dev", "lo"],
        )?;
    }
    within(
        dir,
        Net::Router,
        &["ip", "route", "add", "198.51.100.0/24", "via", "203.0.113.2"],
    )
}

/// Joins `leaf` to the router by a veth pair with the addresses 203.0.113.`base`+1 and +2.
fn link(dir: &Path, base: usize, leaf: Net) -> Result<()> {
    let (router, other) = (file(dir, Net::Router), file(dir, leaf));
    let (router, other) = (router.display().to_string(), other.display().to_string());
    let name = format!("to{base}");
    let near = format!("203.0.113.{}", base + 1);
    let (near_prefix, far_prefix) = (format!("{near}/30"), format!("203.0.113.{}/30", base + 2));
    command(
        "ip",
        &[
            "link", "add", &name, "netns", &router, "type", "veth", "peer", "name", "uplink", "netns", &other,
        ],
    )?;
    within(dir, Net::Router, &["ip", "address", "add", &near_prefix, "dev", &name])?;
    within(dir, leaf, &["ip", "address", "add", &far_prefix, "dev", "uplink"])?;
    within(dir, Net::Router, &["ip", "link", "set", &name, "up"])?;
    within(dir, leaf, &["ip", "link", "set", "uplink", "up"])?;
    within(dir, leaf, &["ip", "route", "add", "default", "via", &near])
}

fn within(dir: &Path, net: Net, arguments: &[&str]) -> Result<()> {
    let namespace = format!("--net={}", file(dir, net).display());
    command("nsenter", &[&[namespace.as_str()], arguments].concat())
}
