//! The only `unsafe` of the project: a socket option that no safe wrapper offers.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `TCP_DEFER_ACCEPT` of tcp(7): a connection is handed out when its first bytes are there, or after `seconds`.
pub(crate) fn set_tcp_defer_accept(socket: BorrowedFd<'_>, seconds: u16) -> io::Result<()> {
    let seconds = libc::c_int::from(seconds);
    // SAFETY: the descriptor is borrowed and so open, and the pointer and length are those of one live c_int, which is
    // what the option takes. The kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of_val(&seconds) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_listener_takes_the_option_and_a_pipe_does_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        set_tcp_defer_accept(listener.as_fd(), 10).unwrap();
        let (pipe, _write) = rustix::pipe::pipe().unwrap();
        assert!(set_tcp_defer_accept(pipe.as_fd(), 10).is_err());
    }
}
