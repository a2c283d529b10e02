//! The table of what is measured: each work, who takes part, and which figures come out of it.

use crate::lab::Role;
use crate::load::{Mode, Report};
use crate::peers::Contender::{
    self, Direct, Dnsmasq, HaProxy, Nginx, NginxKept, Path, Router, SeedPath, SniProxy, Socat, Splice,
};

/// One kind of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// For `--work` and the results file
    pub(crate) key: &'static str,
    /// For people
    pub(crate) title: &'static str,
    /// Who takes part
    pub(crate) contenders: &'static [Contender],
    /// How it is measured
    pub(crate) kind: Kind,
}

/// How a work is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A load runs; figures come from its report and from the CPU time meanwhile.
    Load {
        mode: Mode,
        role: Role,
        connections: usize,
        rate: u64,
        figures: &'static [Figure],
    },
    /// A fresh daemon; its memory with so many idle connections less its memory with none.
    Idle { connections: usize },
    /// A fresh daemon; the time from exec to the first answered connection, and its memory then.
    Start,
    /// The files that an image needs at least: program, shared libraries, modules.
    Image,
}

/// What is reported of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Figure {
    /// CPU microseconds of the daemon for each operation
    Cpu,
    /// CPU seconds of the daemon for each 10^9 bytes
    CpuPerGb,
    /// Median latency in microseconds
    P50,
    /// 99th percentile of the latency in microseconds
    P99,
    /// Operations a second
    Rate,
}

impl Figure {
    /// What the figure is called, and its unit.
    pub(crate) const fn label(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpu => ("CPU", "us"),
            Self::CpuPerGb => ("CPU per GB", "s"),
            Self::P50 => ("latency p50", "us"),
            Self::P99 => ("latency p99", "us"),
            Self::Rate => ("rate", "1/s"),
        }
    }

    /// The figure of one run in which the daemon used `cpu` microseconds; `None` if the run says nothing about it.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn of(self, report: &Report, cpu: u64, contender: Contender) -> Option<f64> {
        let daemon = contender != Direct;
        match self {
            Self::Cpu => (daemon && report.operations > 0).then(|| cpu as f64 / report.operations as f64),
            Self::CpuPerGb => (daemon && report.bytes > 0).then(|| cpu as f64 * 1e3 / report.bytes as f64),
            Self::P50 => Some(f64::from(report.p50)),
            Self::P99 => Some(f64::from(report.p99)),
            Self::Rate => Some(report.operations as f64 / report.seconds),
        }
    }
}

const TLS: &[Contender] = &[Router, Nginx, HaProxy, SniProxy, Socat];
const RELAY: &[Contender] = &[Router, Nginx, HaProxy, SniProxy, Socat, Splice];
const WAITING: &[Contender] = &[Router, Nginx, HaProxy, SniProxy, Socat, Splice, Direct];
const WEB: &[Contender] = &[Router, Nginx, NginxKept, HaProxy, SniProxy];
const NAMES: &[Contender] = &[Router, Dnsmasq];
const BOTH: &[Contender] = &[Path, SeedPath];
const BOTH_WAITING: &[Contender] = &[Path, SeedPath, Direct];

const fn load(
    key: &'static str,
    title: &'static str,
    contenders: &'static [Contender],
    (mode, role, connections, rate): (Mode, Role, usize, u64),
    figures: &'static [Figure],
) -> Work {
    Work {
        key,
        title,
        contenders,
        kind: Kind::Load {
            mode,
            role,
            connections,
            rate,
            figures,
        },
    }
}

const CONNECT: (Mode, Role, usize, u64) = (Mode::Connect, Role::Close, 16, 0);
const CONNECT_PACED: (Mode, Role, usize, u64) = (Mode::Connect, Role::Close, 8, 500);
const ECHO: (Mode, Role, usize, u64) = (Mode::Echo, Role::Echo, 16, 0);
const ECHO_PACED: (Mode, Role, usize, u64) = (Mode::Echo, Role::Echo, 8, 2000);
const DOWN: (Mode, Role, usize, u64) = (Mode::Down, Role::Down, 2, 0);
const UP: (Mode, Role, usize, u64) = (Mode::Up, Role::Up, 2, 0);
const HTTP: (Mode, Role, usize, u64) = (Mode::Http, Role::Web, 16, 0);
const DNS_UDP: (Mode, Role, usize, u64) = (Mode::DnsUdp, Role::Close, 32, 0);
const DNS_TCP: (Mode, Role, usize, u64) = (Mode::DnsTcp, Role::Close, 1, 0);
const DNS_TCP_KEPT: (Mode, Role, usize, u64) = (Mode::DnsTcpKept, Role::Close, 1, 0);

const CPU: &[Figure] = &[Figure::Cpu];
const CPU_PER_GB: &[Figure] = &[Figure::CpuPerGb];
const LATENCY: &[Figure] = &[Figure::P50, Figure::P99];
const CPU_AND_RATE: &[Figure] = &[Figure::Cpu, Figure::Rate];

/// Everything, in the order of the table.
pub(crate) const WORKS: &[Work] = &[
    load("connect", "TLS connection, 100 B", TLS, CONNECT, CPU),
    load(
        "connect-latency",
        "TLS connection at 500/s",
        WAITING,
        CONNECT_PACED,
        LATENCY,
    ),
    load("echo", "64 B echo", RELAY, ECHO, CPU),
    load("echo-latency", "64 B echo at 2,000/s", WAITING, ECHO_PACED, LATENCY),
    load("down", "bulk down", RELAY, DOWN, CPU_PER_GB),
    load("up", "bulk up", RELAY, UP, CPU_PER_GB),
    load("http", "HTTP keep-alive request", WEB, HTTP, CPU),
    Work {
        key: "idle-1000",
        title: "1,000 idle connections",
        contenders: TLS,
        kind: Kind::Idle { connections: 1_000 },
    },
    Work {
        key: "idle-10000",
        title: "10,000 idle connections",
        contenders: &[Router, Nginx, HaProxy, SniProxy],
        kind: Kind::Idle { connections: 10_000 },
    },
    load("dns-udp", "DNS query, UDP", NAMES, DNS_UDP, CPU_AND_RATE),
    load(
        "dns-tcp",
        "DNS query, TCP, one a connection",
        NAMES,
        DNS_TCP,
        CPU_AND_RATE,
    ),
    load(
        "dns-tcp-kept",
        "DNS query, TCP, 50 a connection",
        NAMES,
        DNS_TCP_KEPT,
        CPU_AND_RATE,
    ),
    Work {
        key: "start",
        title: "start",
        contenders: &[Router, Nginx, HaProxy, SniProxy],
        kind: Kind::Start,
    },
    Work {
        key: "image",
        title: "image",
        contenders: &[Router, Nginx, HaProxy, SniProxy, Socat, Dnsmasq, SeedPath],
        kind: Kind::Image,
    },
    load("path-connect", "whole path: TLS connection, 100 B", BOTH, CONNECT, CPU),
    load(
        "path-connect-latency",
        "whole path: TLS connection at 500/s",
        BOTH_WAITING,
        CONNECT_PACED,
        LATENCY,
    ),
    load("path-echo", "whole path: 64 B echo", BOTH, ECHO, CPU),
    load(
        "path-echo-latency",
        "whole path: 64 B echo at 2,000/s",
        BOTH_WAITING,
        ECHO_PACED,
        LATENCY,
    ),
    load("path-down", "whole path: bulk down", BOTH, DOWN, CPU_PER_GB),
    load("path-up", "whole path: bulk up", BOTH, UP, CPU_PER_GB),
    load("path-http", "whole path: HTTP keep-alive request", BOTH, HTTP, CPU),
    Work {
        key: "path-idle-1000",
        title: "whole path: 1,000 idle connections",
        contenders: BOTH,
        kind: Kind::Idle { connections: 1_000 },
    },
    Work {
        key: "path-start",
        title: "whole path: start",
        contenders: BOTH,
        kind: Kind::Start,
    },
];
