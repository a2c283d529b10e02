//! The servers of the lab's internet: real ones from Debian's packages, started once a run.

mod echo;
mod git;
mod nginx;
mod postgres;
mod ssh;
mod unbound;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;

use super::certs::Authority;
use super::netns::Namespace;
use super::process::Process;
use super::sandbox::DIR;
use super::wait;
use super::world;

pub use nginx::{LARGE, file_bytes};
pub use ssh::client_key;

/// Starts them all in `origin` and waits until each accepts connections.
///
/// # Panics
/// When one does not within a minute.
#[must_use]
pub fn start(origin: &Namespace, authority: &Authority) -> Vec<Process> {
    let mut processes = vec![unbound::start(origin)];
    let postgres = std::thread::scope(|scope| {
        let postgres = scope.spawn(|| postgres::start(origin, authority));
        git::create();
        processes.extend(nginx::start(origin, authority));
        processes.push(ssh::start(origin));
        echo::start(origin);
        postgres.join().expect("postgres starts")
    });
    processes.push(postgres);
    let ports = [
        (world::RESOLVER, 53),
        (world::WEB, 443),
        (world::SSH, 22),
        (world::POSTGRES, 5432),
    ];
    for (address, port) in ports {
        wait_port(origin, address, port, &processes);
    }
    processes
}

fn wait_port(origin: &Namespace, address: Ipv4Addr, port: u16, processes: &[Process]) {
    let to = SocketAddr::from((address, port));
    let connected = std::panic::catch_unwind(|| {
        wait::until(60, &to.to_string(), || origin.enter(|| TcpStream::connect(to)).ok());
    });
    if connected.is_err() {
        let logs: Vec<_> = processes.iter().map(ToString::to_string).collect();
        panic!("nothing listens on {to}\n{}", logs.join("\n"));
    }
}

/// A directory of one server.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(DIR).join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}
