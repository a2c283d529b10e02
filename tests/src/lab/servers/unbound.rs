//! unbound, a recursive resolver that finds the zone `example.` in a file.

use std::fs;

use super::directory;
use crate::lab::netns::Namespace;
use crate::lab::process::Process;
use crate::lab::world::Slot;

pub(super) fn start(origin: &Namespace) -> Process {
    let directory = directory("unbound");
    let mut zone = include_str!("files/example.zone").to_owned();
    for last in Slot::FIRST..=Slot::LAST {
        zone.push_str(&format!("s{last}.slot A 203.0.113.{last}\n"));
    }
    // 100 addresses need 1.6 KB: more than a UDP answer carries, so that the router has to ask again over TCP.
    for last in 150..250 {
        zone.push_str(&format!("big.dns A 203.0.113.{last}\n"));
    }
    fs::write(directory.join("example.zone"), zone).unwrap();
    fs::write(directory.join("unbound.conf"), include_str!("files/unbound.conf")).unwrap();
    Process::start(
        "unbound",
        origin
            .command("unbound")
            .args(["-d", "-p", "-c", "/run/lab/unbound/unbound.conf"]),
    )
}
