//! `as-router probe`: do the listeners answer? There is no shell and no nc in the image.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::cli::ProbeArgs;

/// A query for the root name, type A: id 0x5052, no flags, one question (RFC 1035 section 4.1).
const QUERY: [u8; 17] = [0x50, 0x52, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];

/// A datagram may be lost: it is sent again after this time.
const RESEND: Duration = Duration::from_millis(200);

/// Asks every listener; the first that does not answer is the error.
///
/// # Errors
/// Which one did not answer, and why.
pub(crate) async fn run(args: &ProbeArgs) -> Result<(), ProbeError> {
    let check = async {
        let at = |port| SocketAddr::new(args.address, port);
        if !args.forwarder {
            let dns = at(args.dns_port);
            dns_udp(dns)
                .await
                .map_err(|error| ProbeError::new("DNS over UDP", dns, error))?;
            dns_tcp(dns)
                .await
                .map_err(|error| ProbeError::new("DNS over TCP", dns, error))?;
        }
        for (service, port) in [("TLS", args.tls_port), ("HTTP", args.http_port)] {
            let address = at(port);
            TcpStream::connect(address)
                .await
                .map_err(|error| ProbeError::new(service, address, error))?;
        }
        Ok(())
    };
    timeout(args.timeout, check)
        .await
        .unwrap_or(Err(ProbeError::TimedOut(args.address, args.timeout)))
}

/// A listener that does not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("{service} at {address} does not answer: {error}")]
    Service {
        service: &'static str,
        address: SocketAddr,
        error: io::Error,
    },
    #[error("{} did not answer within {} s", Address(.0), .1.as_secs())]
    TimedOut(std::net::IpAddr, Duration),
}

struct Address<'a>(&'a std::net::IpAddr);

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the router at {}", self.0)
    }
}

impl ProbeError {
    const fn new(service: &'static str, address: SocketAddr, error: io::Error) -> Self {
        Self::Service {
            service,
            address,
            error,
        }
    }
}

async fn dns_udp(address: SocketAddr) -> io::Result<()> {
    let any: SocketAddr = if address.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    let mut reply = [0; 512];
    // Ends with the deadline of the whole probe.
    loop {
        socket.send(&QUERY).await?;
        if let Ok(received) = timeout(RESEND, socket.recv(&mut reply)).await {
            return is_answer(reply.get(..received?).unwrap_or_default());
        }
    }
}

async fn dns_tcp(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let mut message = vec![0, QUERY.len() as u8];
    message.extend_from_slice(&QUERY);
    stream.write_all(&message).await?;
    let length = stream.read_u16().await?;
    let mut reply = vec![0; usize::from(length)];
    stream.read_exact(&mut reply).await?;
    is_answer(&reply)
}

/// An answer with our id and the QR bit.
fn is_answer(reply: &[u8]) -> io::Result<()> {
    match reply {
        [0x50, 0x52, flags, ..] if flags & 0x80 != 0 => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "what came back is no DNS answer",
        )),
    }
}
