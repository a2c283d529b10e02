//! dnsmasq that knows the list and forwards nothing.

use std::fmt::Write;

use anyhow::Result;

use super::{Contender, Settings};
use crate::lab::{Daemon, Lab, Net};

pub(super) fn start(lab: &Lab, who: Contender, settings: &Settings) -> Result<Daemon> {
    let mut text = format!(
        "no-resolv\nno-hosts\npid-file\nuser=root\nlisten-address={}\nbind-interfaces\nlocal-ttl=30\ncache-size=0\n",
        who.address()
    );
    // Everything else is NXDOMAIN.
    writeln!(text, "address=/#/")?;
    for host in &settings.names {
        writeln!(text, "address=/{host}/127.0.0.2")?;
    }
    let config = lab.write("dnsmasq.conf", &text)?;
    Daemon::measured(lab, "dnsmasq", Net::Router, &["dnsmasq", "-k", "-C", &config])
}
