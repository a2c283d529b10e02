//! The physical floor: a relay that knows its destination, with two threads a connection that only call splice(2).

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result};
use clap::Args;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};

use crate::lab::Role;

/// What a pipe of an unprivileged user may hold at most (fs.pipe-max-size), and what the peers do not exceed.
const PIPE_BYTES: usize = 1 << 20;

/// Where to listen.
#[derive(Args)]
pub(crate) struct Options {
    /// Address to listen on, at the port that `port` gives for each role
    #[arg(long)]
    bind: Ipv4Addr,
}

/// The port of relays that cannot read a name: one for each server.
pub(crate) const fn port(role: Role) -> u16 {
    4430 + role as u16
}

/// Serves until it is killed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut serving = Vec::new();
    for role in Role::ALL {
        let listener = TcpListener::bind((options.bind, port(role))).context("cannot listen")?;
        serving.push(thread::spawn(move || accept(&listener, role)));
    }
    for server in serving {
        let _ = server.join();
    }
    Ok(())
}

fn accept(listener: &TcpListener, role: Role) {
    for client in listener.incoming().flatten() {
        thread::spawn(move || relay(client, role));
    }
}

fn relay(client: TcpStream, role: Role) -> io::Result<()> {
    let upstream = TcpStream::connect(role.socket())?;
    upstream.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let (client_too, upstream_too) = (client.try_clone()?, upstream.try_clone()?);
    thread::spawn(move || carry(&client_too, &upstream_too));
    carry(&upstream, &client);
    Ok(())
}

fn carry(from: &TcpStream, to: &TcpStream) {
    if carry_all(from, to).is_err() {
        // The thread of the other direction must not wait for ever.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

fn carry_all(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (out, into) = pipe()?;
    fcntl_setpipe_size(&into, PIPE_BYTES)?;
    loop {
        let mut held = splice(from, None, &into, None, PIPE_BYTES, SpliceFlags::MOVE)?;
        if held == 0 {
            return to.shutdown(Shutdown::Write);
        }
        while held > 0 {
            held -= splice(&out, None, to, None, held, SpliceFlags::MOVE)?;
        }
    }
}
