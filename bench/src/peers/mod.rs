//! The contenders: how each is configured, started and reached.
//!
//! Every one has one worker, no access log, the same list of names, and an address of its own in the router's namespace.

mod dnsmasq;
mod haproxy;
mod image;
mod nginx;
mod router;
mod sniproxy;
mod socat;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::lab::{Daemon, Lab, Net, ROUTER_ADDRESSES, Role, host_names, program};
use crate::splice;

pub(crate) use image::image_bytes;
pub(crate) use router::router_at;

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contender {
    /// as-router in router mode
    Router,
    /// nginx with the stream module: the router of before
    Nginx,
    /// nginx with kept connections to HTTP upstreams
    NginxKept,
    /// HAProxy with splice-auto
    HaProxy,
    /// sniproxy
    SniProxy,
    /// socat, one process a connection, destination fixed
    Socat,
    /// dnsmasq
    Dnsmasq,
    /// as-router forward in the pod, as-router behind it
    Path,
    /// socat in the pod, nginx behind it
    SeedPath,
    /// two threads that splice, destination fixed: the floor
    Splice,
    /// no daemon at all: the floor
    Direct,
}

/// What a measurement may vary.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The as-router binary
    pub(crate) router: PathBuf,
    /// The allowlist: names, and `host:port` entries for as-router
    pub(crate) names: Vec<String>,
    /// Sockets that a daemon must be able to hold, where it asks: two for each relayed connection
    pub(crate) connections: u32,
}

impl Settings {
    /// The usual list, and nginx's usual number of connections.
    pub(crate) fn usual(router: PathBuf) -> Self {
        Self {
            router,
            names: host_names(),
            connections: 1024,
        }
    }
}

/// A started contender.
pub(crate) struct Running {
    /// Who it is
    pub(crate) contender: Contender,
    daemons: Vec<Daemon>,
}

impl Contender {
    /// As the tables print it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Router => "as-router",
            Self::Nginx => "nginx",
            Self::NginxKept => "nginx, kept upstreams",
            Self::HaProxy => "HAProxy",
            Self::SniProxy => "sniproxy",
            Self::Socat => "socat",
            Self::Dnsmasq => "dnsmasq",
            Self::Path => "as-router forward + as-router",
            Self::SeedPath => "socat + nginx",
            Self::Splice => "bare splice",
            Self::Direct => "direct",
        }
    }

    /// Whether it is ours.
    pub(crate) const fn is_ours(self) -> bool {
        matches!(self, Self::Router | Self::Path)
    }

    /// Whether ratios are taken to it: a daemon of others that does the work.
    pub(crate) const fn is_peer(self) -> bool {
        !self.is_ours() && !matches!(self, Self::Splice | Self::Direct)
    }

    /// Where its load runs.
    pub(crate) const fn load_net(self) -> Net {
        match self {
            Self::Path => Net::Pod,
            Self::SeedPath => Net::SeedPod,
            _ => Net::Client,
        }
    }

    /// Its address in the router's namespace.
    pub(crate) const fn address(self) -> Ipv4Addr {
        let last = 1 + self as u8;
        assert!(last <= ROUTER_ADDRESSES);
        Ipv4Addr::new(192, 0, 2, last)
    }

    /// Where a client that wants the role's server connects.
    pub(crate) fn target(self, role: Role) -> SocketAddr {
        match self {
            Self::Direct => role.socket().into(),
            Self::Splice | Self::Socat => (self.address(), splice::port(role)).into(),
            Self::Path | Self::SeedPath => (Ipv4Addr::LOCALHOST, role.port()).into(),
            _ => (self.address(), role.port()).into(),
        }
    }

    /// Starts its daemons; they may not be ready yet.
    pub(crate) fn start(self, lab: &Lab, settings: &Settings) -> Result<Running> {
        let daemons = match self {
            Self::Router => vec![router::start(lab, self, settings)?],
            Self::Nginx => vec![nginx::start(lab, self, settings, false)?],
            Self::NginxKept => vec![nginx::start(lab, self, settings, true)?],
            Self::HaProxy => vec![haproxy::start(lab, self, settings)?],
            Self::SniProxy => vec![sniproxy::start(lab, self, settings)?],
            Self::Socat => socat::start(lab, self)?,
            Self::Dnsmasq => vec![dnsmasq::start(lab, self, settings)?],
            Self::Path => vec![
                router::start(lab, self, settings)?,
                router::forward(lab, self, settings)?,
            ],
            Self::SeedPath => {
                let mut daemons = vec![nginx::start(lab, self, settings, false)?];
                daemons.extend(socat::forward(lab, self)?);
                daemons
            }
            Self::Splice => {
                let command = [&program()?, "splice", "--bind", &self.address().to_string()];
                vec![Daemon::measured(lab, "splice", Net::Router, &command)?]
            }
            Self::Direct => Vec::new(),
        };
        Ok(Running {
            contender: self,
            daemons,
        })
    }
}

impl Running {
    /// CPU time of all its daemons so far, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Result<u64> {
        self.daemons.iter().map(Daemon::cpu_micros).sum()
    }

    /// Proportional set size of all its daemons, in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.daemons.iter().map(Daemon::memory).sum()
    }

    /// When its first daemon was executed, in nanoseconds since 1970.
    pub(crate) fn executed(&self) -> Result<u128> {
        let times = self.daemons.iter().map(Daemon::executed).collect::<Result<Vec<_>>>()?;
        ensure!(!times.is_empty(), "no daemon was started");
        Ok(times.into_iter().min().unwrap_or_default())
    }

    /// Fails if a daemon has ended.
    pub(crate) fn assert_alive(&mut self) -> Result<()> {
        self.daemons.iter_mut().try_for_each(Daemon::assert_alive)
    }

    /// How the CPU time is accounted.
    pub(crate) fn accounting(&self) -> Option<&'static str> {
        self.daemons.first().map(Daemon::accounting)
    }
}
