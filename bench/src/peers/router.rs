//! as-router as it ships: everything on, events to a pipe that is read.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

use super::{Contender, Settings};
use crate::lab::{Daemon, Lab, Net};

/// Addresses of routers beyond the contenders' own come after this.
const SESSIONS: u8 = 20;

/// Router mode on the contender's address.
pub(super) fn start(lab: &Lab, who: Contender, settings: &Settings) -> Result<Daemon> {
    let (router, list) = (binary(settings)?, allowlist(lab, settings)?);
    let listen = who.address().to_string();
    let name = format!("{who:?}").to_lowercase();
    Daemon::measured(
        lab,
        &name,
        Net::Router,
        &[router, "--allowlist", &list, "--listen", &listen],
    )
}

/// One more router beside others, as another session has it.
pub(crate) fn router_at(lab: &Lab, number: u8, settings: &Settings) -> Result<Daemon> {
    let (router, list) = (binary(settings)?, allowlist(lab, settings)?);
    let listen = Ipv4Addr::new(192, 0, 2, SESSIONS + number).to_string();
    let name = format!("router-{number}");
    Daemon::measured(
        lab,
        &name,
        Net::Router,
        &[router, "--allowlist", &list, "--listen", &listen],
    )
}

/// Forwarder mode in the pod.
pub(super) fn forward(lab: &Lab, who: Contender, settings: &Settings) -> Result<Daemon> {
    let (router, list) = (binary(settings)?, allowlist(lab, settings)?);
    let to = who.address().to_string();
    Daemon::measured(
        lab,
        "forward",
        Net::Pod,
        &[router, "forward", "--allowlist", &list, "--router", &to],
    )
}

fn allowlist(lab: &Lab, settings: &Settings) -> Result<String> {
    lab.write("allowed-hosts", &(settings.names.join("\n") + "\n"))
}

fn binary(settings: &Settings) -> Result<&str> {
    settings.router.to_str().context("the path of as-router is not UTF-8")
}
