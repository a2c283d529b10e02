//! Happy Eyeballs (RFC 8305): every address is tried, the next one before a slow one has failed.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use allowlist::Refusal;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::socket::{self, Opening};

/// Head start of an address over the next (RFC 8305 section 5, "Connection Attempt Delay").
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Time for one address: three SYNs (at 0, 1 and 3 s).
const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

/// Addresses tried at most: more cannot all be tried within the connection's deadline anyway.
const MOST_ADDRESSES: usize = 32;

/// Connects to the first of `addresses` that answers. They must have been vetted.
///
/// # Errors
/// [`Refusal::UpstreamTimeout`] if any of them stayed silent, [`Refusal::UpstreamUnreachable`] if all refused,
/// [`Refusal::Overloaded`] when out of descriptors.
pub(crate) async fn dial(
    addresses: &[IpAddr],
    port: u16,
    opening: Opening,
) -> Result<(TcpStream, SocketAddr), Refusal> {
    if let [only] = addresses {
        return attempt(SocketAddr::new(*only, port), opening)
            .await
            .map_err(|error| refusal(&error));
    }
    let mut waiting = addresses
        .iter()
        .take(MOST_ADDRESSES)
        .map(|&address| SocketAddr::new(address, port));
    let mut attempts = JoinSet::new();
    let mut worst = Refusal::UpstreamUnreachable;
    loop {
        match waiting.next() {
            Some(next) => {
                attempts.spawn(attempt(next, opening));
            }
            None if attempts.is_empty() => return Err(worst),
            None => {}
        }
        // Without another address to start, only a result ends the wait.
        let head_start = if waiting.len() > 0 {
            ATTEMPT_DELAY
        } else {
            ATTEMPT_LIMIT
        };
        match timeout(head_start, attempts.join_next()).await {
            Ok(Some(Ok(Ok(connected)))) => return Ok(connected),
            Ok(Some(Ok(Err(error)))) => worst = worse(worst, refusal(&error)),
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}

async fn attempt(address: SocketAddr, opening: Opening) -> io::Result<(TcpStream, SocketAddr)> {
    let connecting = socket::connect(address, opening);
    match timeout(ATTEMPT_LIMIT, connecting).await {
        Ok(connected) => Ok((connected?, address)),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn refusal(error: &io::Error) -> Refusal {
    if socket::is_exhausted(error) {
        Refusal::Overloaded
    } else if error.kind() == io::ErrorKind::TimedOut {
        Refusal::UpstreamTimeout
    } else {
        Refusal::UpstreamUnreachable
    }
}

/// The reason that tells the user most: a silent server rather than a refusing one, and our own limits before both.
fn worse(known: Refusal, new: Refusal) -> Refusal {
    match (known, new) {
        (Refusal::Overloaded, _) | (_, Refusal::Overloaded) => Refusal::Overloaded,
        (Refusal::UpstreamTimeout, _) | (_, Refusal::UpstreamTimeout) => Refusal::UpstreamTimeout,
        _ => new,
    }
}
