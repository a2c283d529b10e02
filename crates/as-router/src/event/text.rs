//! Events for people.

use std::fmt;

use super::{Event, Mode, Protocol};

/// Prints an event as one readable line.
pub(super) struct Line<'a>(pub(super) &'a Event);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Event::Ready {
                mode,
                entries,
                listeners,
                version,
            } => {
                let mode = match mode {
                    Mode::Router => "router",
                    Mode::Forwarder => "forwarder",
                };
                write!(
                    f,
                    "ready     {mode} {version}, {entries} entries, listening on {}",
                    listeners.join(" ")
                )
            }
            Event::Reloaded {
                entries,
                added,
                removed,
                cut,
            } => write!(
                f,
                "reloaded  {entries} entries, {added} added, {removed} removed, {cut} connections cut"
            ),
            Event::Allow {
                protocol,
                name,
                port,
                upstream,
                entry,
                ech,
            } => {
                write!(f, "allow     {protocol} {name}:{port} at {upstream} (line {entry})")?;
                if *ech { f.write_str(" with ECH") } else { Ok(()) }
            }
            Event::Close {
                protocol,
                name,
                port,
                bytes_out,
                bytes_in,
                duration_ms,
                reason,
                ..
            } => write!(
                f,
                "close     {protocol} {name}:{port} {bytes_out} bytes out, {bytes_in} in, {duration_ms} ms, {reason:?}"
            ),
            Event::Refuse {
                code,
                protocol,
                name,
                port,
                repeated,
            } => {
                write!(f, "refuse    {protocol} ")?;
                match name {
                    Some(name) => write!(f, "{name}:{port} {code}")?,
                    None => write!(f, "port {port} {code}")?,
                }
                match repeated {
                    Some(times) => write!(f, ", {times} more times"),
                    None => Ok(()),
                }
            }
            Event::Fault { code, message } => write!(f, "fault     {message} ({code})"),
            Event::Stopped { mode } => write!(f, "stopped   {mode}"),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dns => "dns ",
            Self::Tls => "tls ",
            Self::Http => "http",
            Self::Tcp => "tcp ",
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Router => "router",
            Self::Forwarder => "forwarder",
        })
    }
}
