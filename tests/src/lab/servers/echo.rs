//! TCP echo on port 7000 of every address of the origin: sends back what it gets, and closes when its client did.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::thread;

use crate::lab::netns::Namespace;
use crate::lab::world::listen;

pub(super) fn start(origin: &Namespace) {
    let listener = listen(origin, Ipv4Addr::UNSPECIFIED, 7000);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || echo(stream));
        }
    });
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 65536];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}
