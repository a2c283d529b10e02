//! Port 443: routed by the server name of the ClientHello, never decrypted.

use std::sync::Arc;

use allowlist::Refusal;
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::tls::{ClientHello, HelloReader, alert};

use crate::event::Protocol;
use crate::listener::Permit;
use crate::service::{HEAD_DEADLINE, Services, Wanted};
use crate::stream;

/// Port of the upstream.
const PORT: u16 = 443;

/// Serves one accepted connection.
pub(crate) async fn serve(services: Arc<Services>, client: TcpStream, permit: Permit) {
    // All bytes read go to the upstream, first and in order.
    let mut received = Vec::new();
    let mut reader = HelloReader::new();
    // A deferred accept brings the hello along, so that the usual one is read without a timer.
    let early = match stream::read_now(&client, &mut received) {
        0 => Ok(None),
        _ => reader.advance(&received),
    };
    let hello = match early {
        Ok(Some(hello)) => Ok(Ok(hello)),
        Ok(None) => timeout(HEAD_DEADLINE, read_hello(&client, &mut reader, &mut received)).await,
        Err(refusal) => Ok(Err(refusal)),
    };
    let hello = match hello {
        Ok(Ok(hello)) => hello,
        // A port probe: somebody looked whether the port is open, and said nothing.
        Ok(Err(Refusal::HeadIncomplete)) if received.is_empty() => return,
        Ok(Err(refusal)) => return refuse_unnamed(&services, client, refusal).await,
        Err(_) => return refuse_unnamed(&services, client, Refusal::HeadTimeout).await,
    };
    let wanted = Wanted {
        protocol: Protocol::Tls,
        name: hello.name,
        port: PORT,
        ech: hello.ech,
    };
    let (upstream, target) = match services.open(&wanted).await {
        Ok(opened) => opened,
        Err(refusal) => return stream::refuse(&client, &alert(refusal)).await,
    };
    if stream::write_all(&upstream, &received).await.is_err() {
        services.refused(Refusal::UpstreamUnreachable, Protocol::Tls, Some(wanted.name), PORT);
        return stream::refuse(&client, &alert(Refusal::UpstreamUnreachable)).await;
    }
    services.relay(client, upstream, target, received.len() as u64, permit);
}

async fn read_hello(
    client: &TcpStream,
    reader: &mut HelloReader,
    received: &mut Vec<u8>,
) -> Result<ClientHello, Refusal> {
    loop {
        match stream::read_more(client, received).await {
            Ok(0) | Err(_) => return Err(Refusal::HeadIncomplete),
            Ok(_) => {}
        }
        if let Some(hello) = reader.advance(received)? {
            return Ok(hello);
        }
    }
}

async fn refuse_unnamed(services: &Services, client: TcpStream, refusal: Refusal) {
    services.refused(refusal, Protocol::Tls, None, PORT);
    stream::refuse(&client, &alert(refusal)).await;
}
