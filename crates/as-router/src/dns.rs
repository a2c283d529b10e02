//! The DNS service: two socket loops of our own around the pure answers of [`wire::dns`].
//!
//! hickory-server 0.26 is not used for them: its TCP accept loop ends on ECONNABORTED (hickory #3725) and spins on
//! EMFILE, it has no connection limit, and its UDP side starts a task per packet.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::dns::{AnswerAddress, Outcome, Zone, respond};

use crate::event::Protocol as Service;
use crate::listener::{Limit, ListenError, Permit};
use crate::policy::Policy;
use crate::service::Services;
use crate::stream;

/// Longest query looked at over UDP: EDNS clients send at most a few hundred bytes; what is cut is malformed.
const LONGEST_UDP_QUERY: usize = 4096;

/// Most bytes of answers that wait in the UDP socket; the kernel doubles it for bookkeeping. A burst of some thousand
/// queries fits on the way in.
const UDP_BUFFER: usize = 1024 * 1024;

/// How long a TCP client may be silent between messages (RFC 7766 section 6.2.3 asks for seconds), and how long it may
/// take for one message or for reading one answer.
const TCP_LIMIT: Duration = Duration::from_secs(5);

/// Pause after an unexpected error of the UDP socket, so that a lasting one does not spin.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// What DNS answers for allowed names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The name's own loopback address, where the forwarder listens.
    Loopback,
    /// One address for all: the router's own, for a sandbox without a forwarder.
    Fixed(Ipv4Addr),
}

impl Answer {
    const fn zone(self, policy: &Policy) -> Zone<'_> {
        let answer = match self {
            Self::Loopback => AnswerAddress::Loopback,
            Self::Fixed(address) => AnswerAddress::Fixed(address),
        };
        Zone {
            allowlist: &policy.allowlist,
            plan: &policy.plan,
            answer,
        }
    }
}

/// Opens the UDP socket.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn listen_udp(address: SocketAddr) -> Result<UdpSocket, ListenError> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        // Capped by net.core.{r,w}mem_max; less is no fault.
        let _ = socket.set_recv_buffer_size(UDP_BUFFER);
        let _ = socket.set_send_buffer_size(UDP_BUFFER);
        socket.bind(&address.into())?;
        Ok(UdpSocket::from(socket))
    };
    open().map_err(|error| ListenError::new("udp", address, &error))
}

/// Answers over UDP in a thread of its own: two system calls a query, and no download or connection flood in the main
/// thread ever keeps a name waiting.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn serve_udp(socket: UdpSocket, services: Arc<Services>, answer: Answer) -> io::Result<()> {
    thread::Builder::new().name("dns".into()).spawn(move || {
        let mut query = vec![0; LONGEST_UDP_QUERY];
        let mut reply = Vec::with_capacity(1232);
        loop {
            match socket.recv_from(&mut query) {
                // Port 0 cannot be answered.
                Ok((length, client)) if client.port() != 0 => {
                    let query = query.get(..length).unwrap_or_default();
                    if answer_one(&services, answer, query, &mut reply) {
                        // A client that is gone, or a full buffer: it asks again.
                        let _ = socket.send_to(&reply, client);
                    }
                }
                Ok(_) => {}
                // An ICMP error about an earlier answer, or a signal.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot receive DNS queries");
                    thread::sleep(ERROR_PAUSE);
                }
            }
        }
    })?;
    Ok(())
}

/// Answers one TCP client, message after message (RFC 7766), until it closes or dawdles, or, while it has nothing to
/// ask, until another one waits for its place.
pub(crate) async fn serve_tcp(
    services: Arc<Services>,
    client: TcpStream,
    answer: Answer,
    limit: Arc<Limit>,
    permit: Permit,
) {
    let mut received = Vec::new();
    let mut reply = Vec::new();
    let mut replies = Vec::new();
    // One absolute limit per round, so that a byte now and then does not hold the connection.
    loop {
        tokio::select! {
            biased;
            read = timeout(TCP_LIMIT, read_message(&client, &mut received)) => match read {
                Ok(Ok(true)) => {}
                _ => break,
            },
            () = limit.crowded() => break,
        }
        // All messages that have come are answered in one write (RFC 7766 section 6.2.1.1, pipelining).
        while let Some((query, used)) = first_message(&received) {
            if answer_one(&services, answer, query, &mut reply)
                && let Ok(length) = u16::try_from(reply.len())
            {
                replies.extend_from_slice(&length.to_be_bytes());
                replies.extend_from_slice(&reply);
            }
            received.drain(..used);
        }
        match timeout(TCP_LIMIT, stream::write_all(&client, &replies)).await {
            Ok(Ok(())) => replies.clear(),
            _ => break,
        }
    }
    drop(permit);
}

/// Reads until there is a whole message; `false` at the end of the stream.
async fn read_message(client: &TcpStream, received: &mut Vec<u8>) -> io::Result<bool> {
    while first_message(received).is_none() {
        if stream::read_more(client, received).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first message behind its length (RFC 1035 section 4.2.2), and the bytes of both.
fn first_message(received: &[u8]) -> Option<(&[u8], usize)> {
    let (length, rest) = received.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    Some((rest.get(..length)?, length + 2))
}

/// Whether `reply` now holds an answer to send.
fn answer_one(services: &Services, answer: Answer, query: &[u8], reply: &mut Vec<u8>) -> bool {
    let policy = services.policy.current();
    match respond(query, &answer.zone(&policy), reply) {
        Outcome::Ignore => return false,
        Outcome::Answered | Outcome::Rejected(_) => {}
        Outcome::Refused { name, refusal } => services.refused(refusal, Service::Dns, name, PORT),
    }
    true
}

/// The port that events name.
const PORT: u16 = 53;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_by_their_length() {
        assert_eq!(first_message(&[]), None);
        assert_eq!(first_message(&[0]), None);
        assert_eq!(first_message(&[0, 2, 7]), None);
        assert_eq!(first_message(&[0, 2, 7, 8, 9]), Some((&[7, 8][..], 4)));
        assert_eq!(first_message(&[0, 0, 9]), Some((&[][..], 2)));
    }
}
