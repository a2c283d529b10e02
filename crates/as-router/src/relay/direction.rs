//! One direction of a relay: a state machine that copies small flows and splices bulk ones.
//!
//! Rules learnt from public bugs, each a test of the system tests:
//! - `WouldBlock` clears tokio's readiness, so it is only ever reported for the socket that said it (tokio's `try_io`).
//! - A pipe is filled only when it is empty, so that `EAGAIN` cannot mean "pipe full" (sozu #1323, haproxy #2129).
//! - Bytes in flight are counted from what the calls return, never compared with the pipe's size (sozu #1194).
//! - End of stream is acted on when the last byte has left the pipe (haproxy #2505, mmproxy-rs #22).

use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};

use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::buffer::{self, Buffer};
use super::pipe::{self, Pipe};

/// Bytes that a direction moves by copy before it is taken for a bulk transfer. Published measurements put the point
/// where splice(2) wins between 16 and 32 KiB a call; a few windows more keep request-response traffic out.
const BULK_AFTER: u64 = 128 * 1024;

/// A burst (bytes between two waits) below this is no bulk transfer: back to copying.
const BULK_BURST: u64 = 4 * 1024;

/// Most bytes moved per poll, so that one fast download does not keep the other connections of the thread waiting.
const BUDGET: u64 = 1024 * 1024;

/// Bytes asked for in one splice: more than a pipe holds, the kernel stops where the pipe is full.
const SPLICE_MOST: usize = 1024 * 1024;

/// One direction, from one socket to the other.
pub(crate) struct Direction {
    state: State,
    /// Bytes still to move; `u64::MAX` for "to the end of the stream".
    left: u64,
    /// Bytes since the direction was last not bulk.
    run: u64,
    /// Bytes since it last had to wait for its source.
    burst: u64,
    /// Set by the owner once it has passed the end of the stream on.
    pub(super) passed_on: bool,
}

enum State {
    Empty,
    Copying {
        buffer: Buffer,
        start: usize,
        end: usize,
        /// These are the last bytes of the stream.
        last: bool,
    },
    Splicing {
        pipe: Pipe,
        pending: usize,
    },
    Done,
}

impl Direction {
    /// Moves bytes until the source ends.
    pub(crate) const fn to_end() -> Self {
        Self::exactly(u64::MAX)
    }

    /// Moves `bytes` bytes and not one more.
    pub(crate) const fn exactly(bytes: u64) -> Self {
        let state = if bytes == 0 { State::Done } else { State::Empty };
        Self {
            state,
            left: bytes,
            run: 0,
            burst: 0,
            passed_on: false,
        }
    }

    /// Whether the source has ended (or the bytes asked for have come) and all has been written.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Moves what can be moved now; `Ready` when done. `count` is raised by each byte written.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &TcpStream,
        to: &TcpStream,
        count: &AtomicU64,
    ) -> Poll<io::Result<()>> {
        let mut budget = BUDGET;
        while !self.is_done() {
            if budget == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let moved = ready!(self.step(cx, from, to))?;
            count.fetch_add(moved, Ordering::Relaxed);
            budget = budget.saturating_sub(moved);
        }
        Poll::Ready(Ok(()))
    }

    /// One system call's worth of work; the bytes that it wrote.
    fn step(&mut self, cx: &mut Context<'_>, from: &TcpStream, to: &TcpStream) -> Poll<io::Result<u64>> {
        match &mut self.state {
            State::Done => Poll::Ready(Ok(0)),
            State::Empty => {
                match from.poll_read_ready(cx) {
                    Poll::Ready(ready) => ready?,
                    Poll::Pending => {
                        self.waited();
                        return Poll::Pending;
                    }
                }
                Poll::Ready(self.receive(from).map(|()| 0))
            }
            State::Copying {
                buffer,
                start,
                end,
                last,
            } => {
                ready!(to.poll_write_ready(cx))?;
                let rest = buffer.get(*start..*end).unwrap_or_default();
                // The end of the stream, which follows at once, goes into the same packet.
                let flags = if *last {
                    SendFlags::MORE | SendFlags::NOSIGNAL
                } else {
                    SendFlags::NOSIGNAL
                };
                let written = match to.try_io(Interest::WRITABLE, || Ok(rustix::net::send(to, rest, flags)?)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Ready(Ok(0)),
                    result => result?,
                };
                *start += written;
                if start == end {
                    if *last {
                        self.left = 0;
                    }
                    self.emptied();
                }
                Poll::Ready(Ok(written as u64))
            }
            State::Splicing { pipe, pending } => {
                ready!(to.poll_write_ready(cx))?;
                let written = match to.try_io(Interest::WRITABLE, || pipe.drain(to.as_fd(), *pending)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Ready(Ok(0)),
                    result => result?,
                };
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                *pending = pending.saturating_sub(written);
                if *pending == 0 {
                    self.emptied();
                }
                Poll::Ready(Ok(written as u64))
            }
        }
    }

    /// Reads once, into a pipe if this is a bulk transfer and one is free.
    fn receive(&mut self, from: &TcpStream) -> io::Result<()> {
        let pipe = if self.run >= BULK_AFTER { pipe::take() } else { None };
        let received = match pipe {
            Some(pipe) => {
                let most = usize::try_from(self.left).map_or(SPLICE_MOST, |left| left.min(SPLICE_MOST));
                match from.try_io(Interest::READABLE, || pipe.fill(from.as_fd(), most)) {
                    Ok(0) => {
                        pipe::give_back(pipe);
                        0
                    }
                    Ok(pending) => {
                        self.state = State::Splicing { pipe, pending };
                        pending
                    }
                    Err(error) => {
                        pipe::give_back(pipe);
                        return unless_blocked(error);
                    }
                }
            }
            None => {
                let mut buffer = buffer::lend();
                let most = usize::try_from(self.left).map_or(buffer::SIZE, |left| left.min(buffer::SIZE));
                let room = buffer.get_mut(..most).unwrap_or_default();
                match from.try_read(room) {
                    Ok(0) => 0,
                    Ok(mut end) => {
                        let mut last = false;
                        if end < most && self.left == u64::MAX && end_announced(from) {
                            // Only a read of nothing is the end: recv(2) also stops short at an urgent mark (MSG_OOB).
                            match from.try_read(room.get_mut(end..).unwrap_or_default()) {
                                Ok(0) => last = true,
                                Ok(more) => end += more,
                                Err(error) => unless_blocked(error)?,
                            }
                        } else if end < most {
                            clear_readable(from);
                        }
                        self.state = State::Copying {
                            buffer,
                            start: 0,
                            end,
                            last,
                        };
                        end
                    }
                    Err(error) => return unless_blocked(error),
                }
            }
        };
        if received == 0 {
            if self.left != u64::MAX {
                // The sender promised more bytes than it sent.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.state = State::Done;
            return Ok(());
        }
        let received = received as u64;
        self.run = self.run.saturating_add(received);
        self.burst = self.burst.saturating_add(received);
        if self.left != u64::MAX {
            self.left = self.left.saturating_sub(received);
        }
        Ok(())
    }

    /// All that was read has been written: gives the buffer or pipe back.
    fn emptied(&mut self) {
        let next = if self.left == 0 { State::Done } else { State::Empty };
        if let State::Splicing { pipe, pending: 0 } = std::mem::replace(&mut self.state, next) {
            pipe::give_back(pipe);
        }
    }

    /// The source has nothing now: a small burst makes a bulk transfer an ordinary one again. Without a burst it was the
    /// other direction that woke the task.
    fn waited(&mut self) {
        if (1..BULK_BURST).contains(&self.burst) {
            self.run = 0;
        }
        self.burst = 0;
    }
}

/// Nothing was there after all: the next poll waits.
fn unless_blocked(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::WouldBlock {
        Ok(())
    } else {
        Err(error)
    }
}

/// Whether the end of the stream has been announced: then one more read may show that it comes with these bytes, and
/// both can be passed on in one packet.
fn end_announced(stream: &TcpStream) -> bool {
    let announced = pin!(stream.ready(Interest::READABLE));
    match announced.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(ready)) => ready.is_read_closed(),
        _ => false,
    }
}

/// A read that did not fill its buffer emptied the socket: saves the read that would only say `EAGAIN`. The kernel
/// announces later bytes by a new edge, and tokio never clears an edge that came after the read.
pub(crate) fn clear_readable(stream: &TcpStream) {
    let _ = stream.try_io(Interest::READABLE, || {
        io::Result::<()>::Err(io::ErrorKind::WouldBlock.into())
    });
}
