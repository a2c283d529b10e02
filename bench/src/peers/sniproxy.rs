//! sniproxy with a table of names and fixed addresses. Of a kept HTTP connection it checks the first request only.

use std::fmt::Write;

use anyhow::Result;

use super::{Contender, Settings};
use crate::lab::{Daemon, Lab, Net, Role};

pub(super) fn start(lab: &Lab, who: Contender, settings: &Settings) -> Result<Daemon> {
    let pid = lab.dir.join("sniproxy.pid");
    let mut text = format!(
        "user root\npidfile {}\nerror_log {{\n  filename /dev/null\n}}\n",
        pid.display()
    );
    for (port, protocol) in [(443, "tls"), (80, "http")] {
        let address = who.address();
        write!(
            text,
            "listener {address}:{port} {{\n  proto {protocol}\n  table {protocol}_hosts\n}}\n"
        )?;
        writeln!(text, "table {protocol}_hosts {{")?;
        for host in &settings.names {
            // A name without a server of its own stands for the length of the list only.
            let role = Role::ALL
                .into_iter()
                .find(|role| role.host() == host)
                .unwrap_or(Role::Close);
            writeln!(text, "  {} {}", host.replace('.', "\\."), role.socket())?;
        }
        text.push_str("}\n");
    }
    let config = lab.write("sniproxy.conf", &text)?;
    Daemon::measured(lab, "sniproxy", Net::Router, &["sniproxy", "-f", "-c", &config])
}
