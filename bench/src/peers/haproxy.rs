//! HAProxy in its favourite shape: names and addresses in maps, fixed backends, one thread, splice where it thinks it pays.

use std::fmt::Write;

use anyhow::Result;

use super::{Contender, Settings};
use crate::lab::{Daemon, Lab, Net, Role};

pub(super) fn start(lab: &Lab, who: Contender, settings: &Settings) -> Result<Daemon> {
    // Its own choice of pipes, a quarter of the connections, would need more descriptors than some machines allow.
    // nginx counts both sides of a connection, HAProxy one.
    let (address, connections) = (who.address(), settings.connections / 2);
    let list = lab.write("haproxy.names", &(settings.names.join("\n") + "\n"))?;
    let mut backends = String::new();
    let mut map = String::new();
    for role in Role::ALL {
        let (host, mode) = (role.host(), if role == Role::Web { "http" } else { "tcp" });
        writeln!(map, "{host} {host}")?;
        writeln!(
            backends,
            "backend {host}\n  mode {mode}\n  server origin {}",
            role.socket()
        )?;
    }
    let map = lab.write("haproxy.map", &map)?;
    let text = format!(
        "global
  nbthread 1
  maxconn {connections}
  maxpipes 100
defaults
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout tunnel 1h
  option splice-auto
frontend tls
  mode tcp
  bind {address}:443 backlog 16384
  tcp-request inspect-delay 10s
  tcp-request content reject if {{ req.ssl_hello_type 1 }} !{{ req.ssl_sni,lower -m str -f {list} }}
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  tcp-request content reject if WAIT_END
  use_backend %[req.ssl_sni,lower,map({map})]
frontend web
  mode http
  bind {address}:80 backlog 16384
  http-request deny unless {{ req.hdr(host),lower -m str -f {list} }}
  use_backend %[req.hdr(host),lower,map({map})]
{backends}"
    );
    let config = lab.write("haproxy.cfg", &text)?;
    Daemon::measured(lab, "haproxy", Net::Router, &["haproxy", "-db", "-f", &config])
}
