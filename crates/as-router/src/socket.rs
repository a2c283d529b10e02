//! Socket options, each with its reason.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_quickack;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::sys;

/// First keepalive probe after this much silence: a middlebox with a five-minute idle limit keeps its entry.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// Between the probes that a client does not answer, and how many there are: it is gone within two minutes.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 6;

/// Who speaks first on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The client, in every protocol of the port.
    Client,
    /// Anyone: ssh and SMTP servers greet first.
    Any,
}

/// How long a client that says nothing stays in the kernel before it is accepted after all, and its deadline for the
/// first message begins: the shortest the kernel knows, one retransmission of the SYN-ACK.
const DEFER_SECONDS: u16 = 1;

/// Options of a listener. Its accepted sockets inherit them (Linux clones the listener), which saves a system call a
/// connection for each.
///
/// No Nagle: with delayed acknowledgements it turns every small message into a 40 ms wait. Where the client speaks
/// first, it is accepted with its first bytes (one wake-up instead of two), and their acknowledgement travels with the
/// answer (one packet less); after a first answer the kernel does that by itself.
pub(crate) fn prepare_listener(socket: &Socket, opening: Opening) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_EVERY)
            .with_retries(KEEPALIVE_PROBES),
    )?;
    if opening == Opening::Client {
        sys::set_tcp_defer_accept(socket.as_fd(), DEFER_SECONDS)?;
        set_tcp_quickack(socket, false)?;
    }
    Ok(())
}

/// Connects to `address`. If the client has spoken already, the handshake's acknowledgement travels with its first
/// bytes.
///
/// By hand: `TcpSocket::connect` asks for the socket's error in any case, one system call more. The interval and the
/// number of keepalive probes are left to the kernel (75 s and 9) for the same reason.
pub(crate) async fn connect(address: SocketAddr, opening: Opening) -> io::Result<TcpStream> {
    let kind = Type::STREAM.nonblocking();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_AFTER))?;
    if opening == Opening::Client {
        set_tcp_quickack(&socket, false)?;
    }
    match socket.connect(&address.into()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => return Err(error),
        _ => {}
    }
    let stream = TcpStream::from_std(socket.into())?;
    let ready = stream.ready(Interest::WRITABLE | Interest::ERROR).await?;
    if (ready.is_error() || ready.is_write_closed())
        && let Some(error) = stream.take_error()?
    {
        return Err(error);
    }
    Ok(stream)
}

/// Passes the end of a stream on: FIN, while the other direction goes on.
pub(crate) fn shutdown_write(stream: &TcpStream) -> io::Result<()> {
    match SockRef::from(stream).shutdown(Shutdown::Write) {
        // The peer has closed both ways already: there is nobody left to tell.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}

/// Makes the coming close a reset, so that the peer does not take a cut stream for a complete one.
pub(crate) fn reset_on_close(stream: &TcpStream) {
    // Fails only on a socket that is broken already.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Out of descriptors or memory: a state that passes, and that hits every connection alike.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}
