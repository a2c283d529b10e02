//! Pipes for splice(2), pooled and capped.
//!
//! The kernel charges pipe pages to the user, over all of its processes: `fs.pipe-user-pages-soft` is 16384 pages
//! (64 MiB) by default, and past that new pipes shrink to one page. A pipe is therefore held only while bytes are in it,
//! and when none is free the relay copies.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::pipe::{PipeFlags, SpliceFlags};

/// Capacity asked for: a quarter of `fs.pipe-max-size`'s default (1 MiB), and 64 slots, so that a burst of full-sized
/// segments (one slot each) fits and a bulk transfer needs few calls. 32 pipes of 256 KiB are 8 MiB of the user's 64.
const CAPACITY: usize = 256 * 1024;

/// Pipes open at once, lowered by [`limit`].
const MOST: usize = 32;

static ALLOWED: AtomicUsize = AtomicUsize::new(MOST);
static OPEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static FREE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

/// An empty pipe when pooled; see [`take`] and [`give_back`].
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Allows at most `count` pipes (two descriptors each), e.g. where descriptors are short. Returns the limit in force.
pub(crate) fn limit(count: usize) -> usize {
    let count = count.min(MOST);
    ALLOWED.store(count, Ordering::Relaxed);
    count
}

/// Whether this kernel and its filters let splice(2) move bytes between sockets and pipes. Where they do not (some
/// virtual kernels and seccomp profiles), no pipe is ever lent.
pub(crate) fn probe() -> bool {
    let works = try_splice().is_ok();
    if !works {
        limit(0);
    }
    works
}

/// An empty pipe, or `None`: copy instead.
pub(super) fn take() -> Option<Pipe> {
    if let Some(pipe) = FREE.with_borrow_mut(Vec::pop) {
        return Some(pipe);
    }
    let reserved = OPEN.fetch_add(1, Ordering::Relaxed);
    if reserved >= ALLOWED.load(Ordering::Relaxed) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    // From here on dropping a Pipe gives the reservation back.
    match rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) {
        Ok((read, write)) => {
            // A smaller pipe still works, it only needs more calls.
            let _ = rustix::pipe::fcntl_setpipe_size(&write, CAPACITY);
            Some(Pipe { read, write })
        }
        Err(_) => {
            OPEN.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }
}

/// Puts an *empty* pipe back. One that may hold bytes must be dropped: its bytes would reach another connection.
pub(super) fn give_back(pipe: Pipe) {
    FREE.with_borrow_mut(|free| free.push(pipe));
}

impl Pipe {
    /// Moves bytes from a socket into the pipe, which must be empty: only then does `WouldBlock` mean that the socket
    /// has nothing (h2o #3075, sozu #1323).
    pub(super) fn fill(&self, from: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        splice(from, self.write.as_fd(), most)
    }

    /// Moves up to `pending` bytes from the pipe into a socket.
    pub(super) fn drain(&self, to: BorrowedFd<'_>, pending: usize) -> io::Result<usize> {
        splice(self.read.as_fd(), to, pending)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

fn splice(from: BorrowedFd<'_>, to: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    // No SPLICE_F_MORE: it would hold back the last segment of a response (proxies that set it needed fixes).
    rustix::io::retry_on_intr(|| {
        rustix::pipe::splice(from, None, to, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)
    })
    .map_err(io::Error::from)
}

fn try_splice() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    rustix::io::write(&near, b"x")?;
    splice(far.as_fd(), write.as_fd(), 1)?;
    splice(read.as_fd(), far.as_fd(), 1)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_splices() {
        assert!(probe());
    }

    #[test]
    fn pipes_are_capped_and_come_back() {
        // Counts of this process are shared with other tests of this binary: only relative statements hold.
        let held: Vec<_> = std::iter::from_fn(take).take(MOST + 1).collect();
        assert!(held.len() <= MOST);
        let last = held.into_iter().next_back().expect("at least one pipe is free");
        let number = rustix::fd::AsRawFd::as_raw_fd(&last.read);
        give_back(last);
        let again = take().expect("the pipe just given back");
        assert_eq!(rustix::fd::AsRawFd::as_raw_fd(&again.read), number);
    }
}
