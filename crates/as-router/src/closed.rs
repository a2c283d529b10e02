//! The inside check: from where the sandbox will be, nothing but the router answers.
//!
//! `as-router forward --verify-closed` does it before it reports `ready`, in the network namespace and with the
//! resolv.conf of the pod. A network that podman was asked to close, and left open, is found before any command runs
//! (podman #22807, #25438, #27315; netavark and aardvark-dns #447).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use allowlist::{Allowlist, HostName, Service};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// Addresses that nobody has (RFC 5737, RFC 3849): a packet to them shows a way out and bothers no one.
const OFF_LIST: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 443),
];

/// Names that every resolver of the internet knows (RFC 2606), so that one which forwards gives itself away.
const KNOWN_NAMES: [&str; 3] = ["example.com", "example.net", "example.org"];

/// Without a route connect fails at once; with one it would wait for somebody to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// How long the router may take to answer its first query: it starts at the same time.
const ROUTER_LIMIT: Duration = Duration::from_secs(20);

/// A query that got no answer is sent again after this time.
const RESEND: Duration = Duration::from_millis(10);

/// Something that should have failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotClosed {
    #[error("the sandbox's network is open: {0} can be reached, or a packet to it is on its way")]
    Address(SocketAddr),
    #[error("the sandbox's name server is {found:?} and not the router {router} alone")]
    NameServers { found: Vec<String>, router: IpAddr },
    #[error(
        "the name server {server} answers {name}, which is not on the allowlist, with code {code} and not NXDOMAIN"
    )]
    Name {
        server: SocketAddr,
        name: &'static str,
        code: u8,
    },
    #[error("the router's name server {server} does not answer: {error}")]
    Silent { server: SocketAddr, error: io::Error },
    #[error("cannot read /etc/resolv.conf: {0}")]
    ResolvConf(io::Error),
}

/// Shows that an address off the list and a name off the list both fail, and that the router answers.
///
/// # Errors
/// What did not fail.
pub(crate) async fn verify(allowlist: &Allowlist, router: IpAddr) -> Result<(), NotClosed> {
    let text = std::fs::read_to_string("/etc/resolv.conf").map_err(NotClosed::ResolvConf)?;
    only_name_server(&text, router)?;
    for address in OFF_LIST {
        unreachable(address).await?;
    }
    let unlisted = |name: &&str| {
        let name = HostName::from_wire(name.as_bytes());
        name.is_ok_and(|name| allowlist.decide(&name, Service::Name).is_err() && !allowlist.has_names_below(&name))
    };
    // A list that has all of them leaves nothing to ask for.
    let Some(name) = KNOWN_NAMES.into_iter().find(|name| unlisted(name)) else {
        return Ok(());
    };
    let server = SocketAddr::new(router, 53);
    let code = ask(server, name)
        .await
        .map_err(|error| NotClosed::Silent { server, error })?;
    if code == NXDOMAIN {
        Ok(())
    } else {
        Err(NotClosed::Name { server, name, code })
    }
}

/// RFC 1035 section 4.1.1, RCODE 3.
const NXDOMAIN: u8 = 3;

fn only_name_server(resolv_conf: &str, router: IpAddr) -> Result<(), NotClosed> {
    let words = |line: &str| line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let servers = resolv_conf
        .lines()
        .map(words)
        .filter(|words| words.first().is_some_and(|word| word == "nameserver"));
    let found: Vec<String> = servers.map(|words| words.get(1).cloned().unwrap_or_default()).collect();
    match found.as_slice() {
        [only] if only.parse() == Ok(router) => Ok(()),
        _ => Err(NotClosed::NameServers { found, router }),
    }
}

/// A connect without a route fails before a packet is made, for UDP too. Anything else, a refusal or silence, means
/// that the packet went somewhere.
async fn unreachable(address: SocketAddr) -> Result<(), NotClosed> {
    let no_route = |error: &io::Error| {
        use io::ErrorKind as E;
        // IPv6 may be off altogether.
        matches!(error.kind(), E::NetworkUnreachable | E::AddrNotAvailable)
            || error.raw_os_error() == Some(EAFNOSUPPORT)
    };
    let any: SocketAddr = if address.is_ipv4() {
        ([0; 4], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let udp = async { UdpSocket::bind(any).await?.connect(address).await };
    let tcp = async { TcpStream::connect(address).await.map(drop) };
    for attempt in [timeout(CONNECT_LIMIT, udp).await, timeout(CONNECT_LIMIT, tcp).await] {
        match attempt {
            Ok(Err(error)) if no_route(&error) => {}
            _ => return Err(NotClosed::Address(address)),
        }
    }
    Ok(())
}

/// errno(3) on Linux: address family not supported.
const EAFNOSUPPORT: i32 = 97;

/// Asks for the A record of `name` until there is an answer, and returns its code.
async fn ask(server: SocketAddr, name: &str) -> io::Result<u8> {
    let deadline = Instant::now() + ROUTER_LIMIT;
    let query = query(name);
    let any: SocketAddr = if server.is_ipv4() {
        ([0; 4], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    let mut reply = [0; 512];
    loop {
        let resend = Instant::now() + RESEND;
        // Until the router listens, its host refuses the datagram, or the bridge does not know it yet.
        let received = match socket.send(&query).await {
            Ok(_) => timeout_at(resend, socket.recv(&mut reply))
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            Err(error) => Err(error),
        };
        match received {
            Ok(length) => {
                if let Some([a, b, flags, code, ..]) = reply.get(..length)
                    && [*a, *b] == ID
                    && flags & 0x80 != 0
                {
                    return Ok(code & 0x0f);
                }
            }
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => sleep_until(resend).await,
        }
    }
}

const ID: [u8; 2] = [0x43, 0x4c];

/// RFC 1035 section 4.1: a header with one question, for type A in class IN.
fn query(name: &str) -> Vec<u8> {
    let mut query = [&ID[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]].concat();
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend_from_slice(label.as_bytes());
    }
    query.extend_from_slice(&[0, 0, 1, 0, 1]);
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_router_has_to_be_the_only_name_server() {
        let router: IpAddr = "10.89.1.2".parse().unwrap();
        assert!(only_name_server("search x\nnameserver 10.89.1.2\noptions edns0\n", router).is_ok());
        for open in [
            "",
            "nameserver 10.89.1.1\n",
            "nameserver 10.89.1.2\nnameserver 169.254.1.1\n",
            "nameserver\n",
            "# nameserver 10.89.1.2\n",
        ] {
            assert!(only_name_server(open, router).is_err(), "{open:?}");
        }
    }

    #[tokio::test]
    async fn an_address_that_answers_or_refuses_is_open() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert!(matches!(unreachable(address).await, Err(NotClosed::Address(_))));
        drop(listener);
        assert!(matches!(unreachable(address).await, Err(NotClosed::Address(_))));
    }

    #[tokio::test]
    async fn the_answers_code_is_what_counts() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let serve = async {
            let mut bytes = [0; 512];
            let (length, client) = server.recv_from(&mut bytes).await.unwrap();
            assert_eq!(&bytes[12..length], b"\x07example\x03com\x00\x00\x01\x00\x01");
            let answer = [&bytes[..2], &[0x85, 0x83], &bytes[4..length]].concat();
            server.send_to(&answer, client).await.unwrap();
            // The client has its answer; what it sent again meanwhile is not read.
        };
        let (code, ()) = tokio::join!(ask(address, "example.com"), serve);
        assert_eq!(code.unwrap(), NXDOMAIN);
    }
}
