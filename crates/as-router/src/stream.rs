//! Reads and writes on a shared reference to a stream, so that both directions can go on at once without a split.
//!
//! tokio's `readable` and `writable` never make a task yield, so each of these takes from the task's budget: else a peer
//! that is always faster than the router would keep every other connection of the thread waiting.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::coop::consume_budget;
use tokio::time::timeout;

use crate::relay::{self, Buffer};
use crate::socket;

/// How long a refused client has to take its answer, and how many of its bytes are still read meanwhile: closing a
/// socket with unread bytes resets it, and the client would never see the answer (netty #6818, gunicorn #3590).
const DRAIN_TIME: Duration = Duration::from_secs(1);
const DRAIN_BYTES: usize = 4 * 1024 * 1024;

/// Room for a read into a growing buffer: today's ClientHello with its post-quantum share, about 1,800 bytes, fits.
const READ_ROOM: usize = 2048;

/// Writes all of `bytes`.
pub(crate) async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        consume_budget().await;
        match stream.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads what is there, at least one byte, to the end of `into`; 0 at the end of the stream.
pub(crate) async fn read_more(stream: &TcpStream, into: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        consume_budget().await;
        stream.readable().await?;
        match try_read(stream, into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}

/// Reads what is there already, if anything. An end or an error shows itself again at the next read.
pub(crate) fn read_now(stream: &TcpStream, into: &mut Vec<u8>) -> usize {
    try_read(stream, into).unwrap_or(0)
}

fn try_read(stream: &TcpStream, into: &mut Vec<u8>) -> io::Result<usize> {
    // Room is made only now: a silent client holds none.
    into.reserve(READ_ROOM);
    let room = into.capacity() - into.len();
    let read = stream.try_read_buf(into)?;
    if read < room && read > 0 {
        relay::clear_readable(stream);
    }
    Ok(read)
}

/// Answers a client that is refused, and closes so that it can read the answer.
pub(crate) async fn refuse(client: &TcpStream, answer: &[u8]) {
    let _ = timeout(DRAIN_TIME, async {
        write_all(client, answer).await?;
        socket::shutdown_write(client)?;
        let mut inbox = Inbox::default();
        let mut drained = 0;
        while drained < DRAIN_BYTES {
            let read = inbox.fill(client).await?;
            if read == 0 {
                break;
            }
            drained += read;
            inbox.consume(read);
        }
        io::Result::Ok(())
    })
    .await;
}

/// Bytes read from a stream and not used yet. Holds a buffer only while there are any.
#[derive(Default)]
pub(crate) struct Inbox {
    buffer: Option<Buffer>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer
            .as_deref()
            .and_then(|buffer| buffer.get(self.start..self.end))
            .unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Marks the first `count` bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
        if self.is_empty() {
            *self = Self::default();
        }
    }

    /// Waits for bytes and reads them; 0 at the end of the stream. What is unused must be less than a buffer.
    pub(crate) async fn fill(&mut self, stream: &TcpStream) -> io::Result<usize> {
        loop {
            consume_budget().await;
            stream.readable().await?;
            let buffer = self.buffer.get_or_insert_with(relay::lend_buffer);
            if self.start > 0 {
                buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let room = buffer.get_mut(self.end..).unwrap_or_default();
            let size = room.len();
            if size == 0 {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            match stream.try_read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.consume(0),
                Ok(read) => {
                    if read < size && read > 0 {
                        relay::clear_readable(stream);
                    }
                    self.end += read;
                    self.consume(0);
                    return Ok(read);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::net::TcpListener;

    /// A socket that always takes what is written must not keep the thread from everyone else.
    #[tokio::test]
    async fn a_peer_that_is_always_ready_leaves_room_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stream.writable().await.unwrap();
        let others_ran = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&others_ran);
        let busy = tokio::spawn(async move {
            for _ in 0..1000 {
                write_all(&stream, b"x").await.unwrap();
            }
            seen.load(Ordering::Relaxed)
        });
        tokio::spawn(async move { others_ran.store(true, Ordering::Relaxed) });
        assert!(busy.await.unwrap());
    }
}
