//! TCP forwards: the destination comes from the listener alone, never from what the client sends.

use std::sync::Arc;

use allowlist::HostName;
use tokio::net::TcpStream;

use crate::event::Protocol;
use crate::listener::Permit;
use crate::service::{Services, Wanted};
use crate::socket;

/// Serves one connection accepted by the listener of `name:port`.
pub(crate) async fn serve(services: Arc<Services>, client: TcpStream, name: HostName, port: u16, permit: Permit) {
    let wanted = Wanted {
        protocol: Protocol::Tcp,
        name,
        port,
        ech: false,
    };
    match services.open(&wanted).await {
        Ok((upstream, target)) => services.relay(client, upstream, target, 0, permit),
        // No protocol to say why in: a reset is what a connection refused further on looks like.
        Err(_) => socket::reset_on_close(&client),
    }
}
