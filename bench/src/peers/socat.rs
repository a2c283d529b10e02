//! socat: a process for each connection, to one destination.

use std::net::SocketAddr;

use anyhow::Result;

use super::Contender;
use crate::lab::{Daemon, Lab, Net, Role};

/// One listener for each server, for measurements of the relay alone.
pub(super) fn start(lab: &Lab, who: Contender) -> Result<Vec<Daemon>> {
    Role::ALL
        .iter()
        .map(|role| one(lab, Net::Router, who.target(*role), role.socket().into()))
        .collect()
}

/// The two listeners of a pod, towards the contender's router.
pub(super) fn forward(lab: &Lab, who: Contender) -> Result<Vec<Daemon>> {
    let ports = [Role::Close, Role::Web];
    ports
        .iter()
        .map(|role| {
            one(
                lab,
                Net::SeedPod,
                who.target(*role),
                (who.address(), role.port()).into(),
            )
        })
        .collect()
}

fn one(lab: &Lab, net: Net, listen: SocketAddr, to: SocketAddr) -> Result<Daemon> {
    let (ip, port) = (listen.ip(), listen.port());
    let from = format!("TCP4-LISTEN:{port},bind={ip},fork,reuseaddr,backlog=16384");
    Daemon::measured(
        lab,
        &format!("socat-{port}"),
        net,
        &["socat", &from, &format!("TCP4:{to}")],
    )
}
