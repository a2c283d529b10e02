//! What the router tells the outside: one event per line, JSON for programs or text for people.
//!
//! The schema is documented in `docs/events.md` and tested by the system tests.

mod fold;
mod log;
mod text;

pub(crate) use log::{EventLog, Format};

use std::net::SocketAddr;

use allowlist::{HostName, Refusal};
use serde::{Serialize, Serializer};

/// One event. Every string in it comes from the router itself or is a validated [`HostName`]: what strangers send is
/// never printed raw, so that a terminal that shows the log is safe.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// Every listener is up.
    Ready {
        mode: Mode,
        /// Entries of the allowlist.
        entries: usize,
        /// Addresses listened on, `protocol://address:port`.
        listeners: Vec<String>,
        version: &'static str,
    },
    /// A new allowlist is in force.
    Reloaded {
        entries: usize,
        added: usize,
        removed: usize,
        cut: usize,
    },
    /// A connection was let through.
    Allow {
        protocol: Protocol,
        #[serde(serialize_with = "some_name")]
        name: HostName,
        port: u16,
        /// The address that was dialled.
        upstream: SocketAddr,
        /// Line of the allowlist that allows it.
        entry: u32,
        /// Present when the ClientHello offers Encrypted Client Hello: the inner name is unknown.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        ech: bool,
    },
    /// A connection that was let through has ended.
    Close {
        protocol: Protocol,
        #[serde(serialize_with = "some_name")]
        name: HostName,
        port: u16,
        upstream: SocketAddr,
        entry: u32,
        /// Bytes from the client to the upstream.
        bytes_out: u64,
        /// Bytes from the upstream to the client.
        bytes_in: u64,
        duration_ms: u64,
        reason: CloseReason,
    },
    /// A request was refused.
    Refuse {
        code: &'static str,
        protocol: Protocol,
        /// Absent if the client sent no valid name.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_name")]
        name: Option<HostName>,
        port: u16,
        /// How often the same was refused since it was last reported, if more than once.
        #[serde(skip_serializing_if = "Option::is_none")]
        repeated: Option<u64>,
    },
    /// Something is wrong with the router or its surroundings.
    Fault {
        code: &'static str,
        /// What happened, to what, why, and what to do.
        message: String,
    },
    /// The process was told to end, and does.
    Stopped { mode: Mode },
}

/// Which service a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    Dns,
    Tls,
    Http,
    Tcp,
}

/// The job of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    Router,
    Forwarder,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CloseReason {
    /// Both sides closed in order.
    Closed,
    /// One side failed or was reset; the other was reset.
    Reset,
    /// Half-closed and silent for too long.
    Idle,
    /// The upstream did not speak HTTP, or a request was refused in mid-connection.
    Refused,
    /// Its entry was removed from the allowlist.
    Revoked,
    /// The router stopped.
    Stopped,
}

impl Event {
    pub(crate) fn refuse(refusal: Refusal, protocol: Protocol, name: Option<HostName>, port: u16) -> Self {
        Self::Refuse {
            code: refusal.code(),
            protocol,
            name,
            port,
            repeated: None,
        }
    }
}

fn some_name<S: Serializer>(name: &HostName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_str())
}

fn optional_name<S: Serializer>(name: &Option<HostName>, serializer: S) -> Result<S::Ok, S::Error> {
    name.as_ref().map(HostName::as_str).serialize(serializer)
}
