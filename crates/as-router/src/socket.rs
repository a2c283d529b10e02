//! Socket options, each with its reason.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// First keepalive probe after this much silence, the interval between probes, and how many may go unanswered: a dead
/// peer is noticed within two minutes, and a middlebox with a five-minute idle limit keeps its entry.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 6;

/// Options that every relayed socket has. Set on a listener, its accepted sockets inherit them (Linux clones the
/// listener), which saves five system calls a connection.
///
/// No Nagle on either side: with delayed acknowledgements it turns every small message into a 40 ms wait.
pub(crate) fn prepare(socket: SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_EVERY)
            .with_retries(KEEPALIVE_PROBES),
    )
}

/// Connects to `address`. One system call less than `TcpSocket::connect`, which asks for the socket's error in any case.
pub(crate) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    prepare(SockRef::from(&socket))?;
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
