//! Moves bytes between a client and its upstream until both have said all they had to say.

mod buffer;
mod direction;
mod pipe;

pub(crate) use buffer::{Buffer, lend as lend_buffer};
pub(crate) use direction::{Direction, clear_readable};
pub(crate) use pipe::{limit as limit_pipes, probe as probe_splice};

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::socket;

/// Bytes moved so far, readable while the relay runs.
#[derive(Default)]
pub(crate) struct Traffic {
    /// From the client to the upstream.
    pub(crate) sent: AtomicU64,
    /// From the upstream to the client.
    pub(crate) received: AtomicU64,
}

impl Traffic {
    /// Both ways together.
    pub(crate) fn total(&self) -> u64 {
        self.sent
            .load(Ordering::Relaxed)
            .wrapping_add(self.received.load(Ordering::Relaxed))
    }
}

/// The two sockets of a connection. Dropped before it has ended in order, it resets both: nobody takes a cut stream for
/// a complete one.
pub(crate) struct Pair {
    pub(crate) client: TcpStream,
    pub(crate) upstream: TcpStream,
    in_order: bool,
}

impl Pair {
    pub(crate) const fn new(client: TcpStream, upstream: TcpStream) -> Self {
        Self {
            client,
            upstream,
            in_order: false,
        }
    }

    /// From here on dropping it closes both sides as usual.
    pub(crate) fn in_order(&mut self) {
        self.in_order = true;
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if !self.in_order {
            socket::reset_on_close(&self.client);
            socket::reset_on_close(&self.upstream);
        }
    }
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Both sides closed in order.
    Closed,
    /// One side failed; the other was reset, so that nobody takes a truncated stream for a complete one.
    Reset,
    /// Half-closed, and silent for longer than the limit.
    Idle,
}

/// A future that relays both directions.
pub(crate) struct Relay<'a> {
    client: &'a TcpStream,
    upstream: &'a TcpStream,
    traffic: &'a Traffic,
    out: Direction,
    back: Direction,
    half_closed: Option<HalfClosed>,
    half_close_limit: Duration,
}

/// The clock of a connection of which one direction is over.
struct HalfClosed {
    sleep: Pin<Box<Sleep>>,
    /// Bytes at the time the clock was set: traffic since then sets it anew.
    seen: u64,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        client: &'a TcpStream,
        upstream: &'a TcpStream,
        traffic: &'a Traffic,
        half_close_limit: Duration,
    ) -> Self {
        Self {
            client,
            upstream,
            traffic,
            out: Direction::to_end(),
            back: Direction::to_end(),
            half_closed: None,
            half_close_limit,
        }
    }

    /// Whether both directions are over.
    fn poll_directions(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let Self {
            client,
            upstream,
            traffic,
            out,
            back,
            ..
        } = self;
        if let Poll::Ready(result) = out.poll(cx, client, upstream, &traffic.sent) {
            result?;
            pass_on(out, back, upstream)?;
        }
        if let Poll::Ready(result) = back.poll(cx, upstream, client, &traffic.received) {
            result?;
            pass_on(back, out, client)?;
        }
        Ok(out.is_done() && back.is_done())
    }

    fn poll_half_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.out.is_done() && !self.back.is_done() {
            return Poll::Pending;
        }
        let total = self.traffic.total();
        let limit = self.half_close_limit;
        let clock = self.half_closed.get_or_insert_with(|| HalfClosed {
            sleep: Box::pin(tokio::time::sleep(limit)),
            seen: total,
        });
        loop {
            if clock.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if clock.seen == total {
                return Poll::Ready(());
            }
            clock.seen = total;
            clock.sleep.as_mut().reset(Instant::now() + limit);
        }
    }
}

/// Passes the end of a finished direction on, once, with shutdown(2); for the last one close(2) does that.
fn pass_on(finished: &mut Direction, other: &Direction, to: &TcpStream) -> io::Result<()> {
    if other.is_done() || std::mem::replace(&mut finished.passed_on, true) {
        return Ok(());
    }
    socket::shutdown_write(to)
}

impl Future for Relay<'_> {
    type Output = End;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        let this = self.get_mut();
        match this.poll_directions(cx) {
            Ok(true) => Poll::Ready(End::Closed),
            Err(_) => Poll::Ready(End::Reset),
            Ok(false) => match this.poll_half_closed(cx) {
                Poll::Ready(()) => Poll::Ready(End::Idle),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream as Blocking};

    use rustix::net::SendFlags;

    /// A connection over loopback: the relay's end and the peer's.
    fn connection() -> (TcpStream, Blocking) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = Blocking::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        (TcpStream::from_std(ours).unwrap(), peer)
    }

    /// Relays what `client` and `upstream`, each on a thread, say to each other.
    async fn relay<A: Send + 'static, B: Send + 'static>(
        client: impl FnOnce(Blocking) -> A + Send + 'static,
        upstream: impl FnOnce(Blocking) -> B + Send + 'static,
    ) -> (End, A, B) {
        let (near, client_peer) = connection();
        let (far, upstream_peer) = connection();
        let client = tokio::task::spawn_blocking(move || client(client_peer));
        let upstream = tokio::task::spawn_blocking(move || upstream(upstream_peer));
        let mut pair = Pair::new(near, far);
        let traffic = Traffic::default();
        let end = Relay::new(&pair.client, &pair.upstream, &traffic, Duration::from_secs(5)).await;
        if end == End::Closed {
            pair.in_order();
        }
        drop(pair);
        (end, client.await.unwrap(), upstream.await.unwrap())
    }

    fn read_all(mut stream: Blocking) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).map(|_| bytes)
    }

    #[tokio::test]
    async fn every_size_arrives_whole_in_both_directions() {
        for size in [0, 1, 16_383, 32_768, 32_769, 65_537, 131_072, 131_073, 3_000_000] {
            let bytes: Vec<u8> = (0..size)
                .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect();
            let (sent, expected) = (bytes.clone(), bytes.clone());
            let (end, echoed, received) = relay(
                move |mut client| {
                    client.write_all(&sent).unwrap();
                    client.shutdown(std::net::Shutdown::Write).unwrap();
                    read_all(client).unwrap()
                },
                move |mut upstream| {
                    let mut received = Vec::new();
                    upstream.read_to_end(&mut received).unwrap();
                    upstream.write_all(&received).unwrap();
                    received
                },
            )
            .await;
            assert_eq!(end, End::Closed, "{size}");
            assert!(received == expected && echoed == expected, "{size}");
        }
    }

    /// recv(2) stops short at an urgent mark: that is not the end of the stream.
    #[tokio::test]
    async fn bytes_behind_an_urgent_mark_are_not_lost() {
        let (end, received, ()) = relay(
            |client| read_all(client).unwrap(),
            |mut upstream| {
                upstream.write_all(b"0123456789").unwrap();
                rustix::net::send(&upstream, b"!", SendFlags::OOB).unwrap();
                upstream.write_all(b"abcdefghij").unwrap();
            },
        )
        .await;
        assert_eq!(end, End::Closed);
        let received: Vec<u8> = received.into_iter().filter(|byte| *byte != b'!').collect();
        assert_eq!(received, b"0123456789abcdefghij");
    }

    /// haproxy #2505, mmproxy-rs #22: a truncated stream must not look like a complete one.
    #[tokio::test]
    async fn a_reset_is_passed_on_as_a_reset() {
        for sent in [1, 100_000] {
            let (end, received, ()) = relay(read_all, move |mut upstream| {
                upstream.write_all(&vec![7; sent]).unwrap();
                // Time for the bytes to be read before the reset overtakes them.
                std::thread::sleep(Duration::from_millis(50));
                socket2::SockRef::from(&upstream)
                    .set_linger(Some(Duration::ZERO))
                    .unwrap();
            })
            .await;
            assert_eq!(end, End::Reset);
            assert!(received.is_err(), "{sent}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_closed_silence_ends_and_an_open_one_does_not() {
        let (near, _client) = connection();
        let (far, upstream) = connection();
        let traffic = Traffic::default();
        let limit = Duration::from_secs(300);
        let mut relay = Relay::new(&near, &far, &traffic, limit);
        assert!(
            tokio::time::timeout(Duration::from_secs(100_000), &mut relay)
                .await
                .is_err()
        );
        upstream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(relay.await, End::Idle);
    }
}
