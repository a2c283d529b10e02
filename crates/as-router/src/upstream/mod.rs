//! The way to the real server: resolve the allowed name, vet its addresses, dial them.

mod cache;
mod dial;
mod resolve;

pub(crate) use dial::dial;
pub(crate) use resolve::Resolver;

use std::net::SocketAddr;
use std::time::Duration;

use allowlist::{HostName, Refusal};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::socket::Opening;

/// Resolution and all connection attempts together. An agent's tools give up or retry after 10 to 60 s; a refusal
/// with a reason has to come before that.
const DEADLINE: Duration = Duration::from_secs(15);

/// A connection to `name`, and the address it goes to.
///
/// # Errors
/// The refusal to give to the client, which learns of it at once.
pub(crate) async fn connect(
    resolver: &Resolver,
    name: &HostName,
    port: u16,
    opening: Opening,
) -> Result<(TcpStream, SocketAddr), Refusal> {
    // The usual case, a known name with one address, has only the timer of its one attempt.
    if let Some(addresses) = resolver.known(name)
        && let [only] = *addresses
    {
        return dial(&[only], port, opening).await;
    }
    let attempt = async {
        let addresses = resolver.resolve(name).await?;
        dial(&addresses, port, opening).await
    };
    timeout(DEADLINE, attempt)
        .await
        .unwrap_or(Err(Refusal::UpstreamTimeout))
}
