//! Listening sockets: how they are opened, and the accept loop that every TCP service shares.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::event::{Event, EventLog};
use crate::heartbeat;
use crate::port_owner;
use crate::socket::{self, Opening};

/// Connections that wait in the kernel while the router is at its limit; `net.core.somaxconn` (4096 by default) caps it.
const BACKLOG: i32 = 4096;

/// Pause after running out of descriptors or memory, as HAProxy and others do: accepting at once would spin (oven-sh/bun
/// #32705, joyent/libuv #690).
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// One event for as long a time of being exhausted.
const EXHAUSTED_REPORT: Duration = Duration::from_secs(5);

/// A connection's place under the limit; dropping it makes room.
pub(crate) type Permit = OwnedSemaphorePermit;

/// Why a listener could not be opened, in words that say what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {protocol} {address}: {reason}")]
pub(crate) struct ListenError {
    protocol: &'static str,
    address: SocketAddr,
    reason: String,
}

impl ListenError {
    pub(crate) fn new(protocol: &'static str, address: SocketAddr, error: &io::Error) -> Self {
        let port = address.port();
        let reason = match Errno::from_io_error(error) {
            Some(Errno::ADDRINUSE) => match port_owner::find(protocol, address) {
                Some(owner) => format!("the port is in use by {owner}; stop it or choose another port"),
                None => "the port is in use by another process; stop it or choose another port".to_owned(),
            },
            Some(Errno::ACCESS | Errno::PERM) if port < 1024 => format!(
                "permission denied; ports below 1024 need root or the capability CAP_NET_BIND_SERVICE (in a container: \
                 --cap-add NET_BIND_SERVICE), or choose a port such as {}",
                port + 8000
            ),
            Some(Errno::ADDRNOTAVAIL) => "no interface of this machine has that address; check --listen".to_owned(),
            Some(Errno::MFILE | Errno::NFILE) => "out of file descriptors; raise the limit (ulimit -n)".to_owned(),
            _ => error.to_string(),
        };
        Self {
            protocol,
            address,
            reason,
        }
    }
}

/// Opens a listening TCP socket; accepted sockets inherit its options.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn listen(address: SocketAddr, opening: Opening) -> Result<Arc<TcpListener>, ListenError> {
    let open = || {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM.nonblocking(),
            Some(Protocol::TCP),
        )?;
        // Without it, connections of an earlier process in TIME_WAIT would hold the port.
        socket.set_reuse_address(true)?;
        socket::prepare_listener(&socket, opening)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into()).map(Arc::new)
    };
    open().map_err(|error| ListenError::new("tcp", address, &error))
}

/// Accepts for ever: at the connection limit new ones wait in the kernel's backlog, and no error ends the loop.
pub(crate) async fn accept_loop(
    listener: Arc<TcpListener>,
    limit: Arc<Limit>,
    log: EventLog,
    serve: impl Fn(TcpStream, SocketAddr, Permit),
) {
    let mut reported = None::<Instant>;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                heartbeat::keep_going();
                // A place is taken only now, so that listeners nobody uses hold none: at the limit, each listener has
                // one connection that waits here.
                let Some(permit) = limit.enter().await else { return };
                serve(stream, peer, permit);
            }
            Err(error) => match Severity::of(&error) {
                Severity::OneConnection => {}
                Severity::Exhausted => {
                    if reported.is_none_or(|time| time.elapsed() >= EXHAUSTED_REPORT) {
                        reported = Some(Instant::now());
                        log.report(&exhausted(&error));
                    }
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            },
        }
    }
}

/// How many connections a service holds at once.
pub(crate) struct Limit {
    places: Arc<Semaphore>,
    crowded: Notify,
}

impl Limit {
    pub(crate) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(connections)),
            crowded: Notify::new(),
        })
    }

    /// Waits for a place. `None` never happens: the semaphore is not closed.
    async fn enter(&self) -> Option<Permit> {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(permit);
        }
        self.crowded.notify_one();
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Ends when somebody waits for a place; of several waiting for this, the one that has waited longest is told.
    pub(crate) async fn crowded(&self) {
        self.crowded.notified().await;
    }

    /// Waits until every place is free.
    pub(crate) async fn empty(&self, connections: usize) {
        let all = u32::try_from(connections).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }
}

fn exhausted(error: &io::Error) -> Event {
    Event::Fault {
        code: "accept-failed",
        message: format!("cannot accept connections: {error}; they wait in the backlog until there is room"),
    }
}

/// What an accept error is about.
#[derive(Debug, PartialEq, Eq)]
enum Severity {
    /// The connection that was to be accepted is gone: nothing to do (hickory #3725 ended its listener here).
    OneConnection,
    /// The process or the machine is out of something: wait.
    Exhausted,
}

impl Severity {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            // accept(2): pending network errors of the new socket are passed on and are to be retried.
            Some(
                Errno::CONNABORTED
                | Errno::INTR
                | Errno::PROTO
                | Errno::NETDOWN
                | Errno::NOPROTOOPT
                | Errno::HOSTDOWN
                | Errno::NONET
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
                | Errno::NETUNREACH
                | Errno::PERM,
            ) => Self::OneConnection,
            // Whatever else: pausing is right for a passing state, and cheap for a lasting one.
            _ => Self::Exhausted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_errors_never_end_the_listener_and_never_spin() {
        for (errno, severity) in [
            (Errno::CONNABORTED, Severity::OneConnection),
            (Errno::INTR, Severity::OneConnection),
            (Errno::MFILE, Severity::Exhausted),
            (Errno::NFILE, Severity::Exhausted),
            (Errno::NOBUFS, Severity::Exhausted),
            (Errno::NOMEM, Severity::Exhausted),
            (Errno::BADF, Severity::Exhausted),
        ] {
            assert_eq!(Severity::of(&io::Error::from(errno)), severity, "{errno:?}");
        }
    }

    #[test]
    fn a_port_in_use_is_named_with_its_owner() {
        let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = holder.local_addr().unwrap();
        let error = ListenError::new("tcp", address, &io::Error::from(Errno::ADDRINUSE)).to_string();
        assert!(error.contains(&address.to_string()), "{error}");
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
    }

    #[test]
    fn a_forbidden_port_says_what_to_do() {
        let error = ListenError::new("udp", "0.0.0.0:53".parse().unwrap(), &io::Error::from(Errno::ACCESS)).to_string();
        assert!(
            error.contains("CAP_NET_BIND_SERVICE") && error.contains("8053"),
            "{error}"
        );
    }
}
