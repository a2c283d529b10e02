//! What the servers behind the router do, by name: each has an address of its own.

use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use anyhow::Result;

use super::RESOLVER;

/// What a server does with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Reads a hello, answers 100 bytes, closes.
    Close,
    /// Reads a hello, then echoes.
    Echo,
    /// Reads a hello, then sends for ever.
    Down,
    /// Reads a hello, then discards to the end, and closes.
    Up,
    /// Reads a hello, answers one byte, then waits.
    Idle,
    /// HTTP/1.1 with keep-alive on port 80.
    Web,
}

/// Names on every allowlist beyond the roles': a list of 50, as a team's would be.
const FILLERS: u32 = 44;

impl Role {
    pub(crate) const ALL: [Self; 6] = [Self::Close, Self::Echo, Self::Down, Self::Up, Self::Idle, Self::Web];

    /// The name that the client asks for.
    pub(crate) const fn host(self) -> &'static str {
        match self {
            Self::Close => "close.example.com",
            Self::Echo => "echo.example.com",
            Self::Down => "down.example.com",
            Self::Up => "up.example.com",
            Self::Idle => "idle.example.com",
            Self::Web => "www.example.com",
        }
    }

    /// The address that the name has (RFC 5737).
    pub(crate) const fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 51, 100, 10 + self as u8)
    }

    /// 80 for the web server, 443 for the others.
    pub(crate) const fn port(self) -> u16 {
        if matches!(self, Self::Web) { 80 } else { 443 }
    }

    /// Address and port.
    pub(crate) const fn socket(self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address(), self.port())
    }
}

/// The names of the allowlist that every daemon gets, unless a measurement says otherwise.
pub(crate) fn host_names() -> Vec<String> {
    let roles = Role::ALL.iter().map(|role| role.host().to_owned());
    roles
        .chain((0..FILLERS).map(|number| format!("host-{number}.example.net")))
        .collect()
}

/// The configuration of the name server that the routers ask.
pub(super) fn resolver_config(dir: &Path) -> Result<String> {
    // Without local-ttl dnsmasq answers TTL 0, and everybody would ask again at each connection.
    let mut text = format!(
        "no-resolv\nno-hosts\npid-file\nuser=root\nlisten-address={RESOLVER}\nbind-interfaces\nlocal-ttl=300\ncache-size=0\n"
    );
    for role in Role::ALL {
        writeln!(text, "address=/{}/{}", role.host(), role.address())?;
    }
    let path = dir.join("resolver.conf");
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}
