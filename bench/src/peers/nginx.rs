//! nginx as a sandbox's router: 443 by `ssl_preread` and 80 by Host, both through a `map` that is the allowlist.

use std::fmt::Write;

use anyhow::Result;

use super::{Contender, Settings};
use crate::lab::{Daemon, Lab, Net, RESOLVER, Role};

/// Upstreams by name through the resolver, as before; `kept` puts the web server into an `upstream` with kept connections.
pub(super) fn start(lab: &Lab, who: Contender, settings: &Settings, kept: bool) -> Result<Daemon> {
    let (address, connections) = (who.address(), settings.connections);
    let name = format!("{who:?}").to_lowercase();
    let mut map = String::new();
    for host in &settings.names {
        writeln!(map, "{host} {host};")?;
    }
    let upstream = if kept {
        format!(
            "upstream {} {{ server {}; keepalive 64; keepalive_requests 10000000; }}",
            Role::Web.host(),
            Role::Web.socket()
        )
    } else {
        String::new()
    };
    let resolver = format!("resolver {RESOLVER} ipv6=off valid=30s;");
    let pid = lab.dir.join(format!("{name}.pid"));
    let scratch = lab.dir.display();
    let text = format!(
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;
user root;
worker_processes 1;
daemon off;
error_log /dev/null;
pid {pid};
events {{ worker_connections {connections}; }}
stream {{
  access_log off;
  {resolver}
  map_hash_max_size 4096;
  map_hash_bucket_size 128;
  map $ssl_preread_server_name $allowed {{ default \"\"; {map} }}
  server {{ listen {address}:443 backlog=16384; ssl_preread on; proxy_pass $allowed:443; }}
}}
http {{
  access_log off;
  {resolver}
  client_body_temp_path {scratch}; proxy_temp_path {scratch}; fastcgi_temp_path {scratch};
  uwsgi_temp_path {scratch}; scgi_temp_path {scratch};
  keepalive_requests 10000000;
  map_hash_max_size 4096;
  map_hash_bucket_size 128;
  map $host $allowed {{ default \"\"; {map} }}
  {upstream}
  server {{
    listen {address}:80 backlog=16384;
    if ($allowed = \"\") {{ return 403; }}
    location / {{
      proxy_pass http://$allowed;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Connection \"\";
    }}
  }}
}}
",
        pid = pid.display()
    );
    let config = lab.write(&format!("{name}.conf"), &text)?;
    Daemon::measured(lab, &name, Net::Router, &["nginx", "-e", "/dev/null", "-c", &config])
}
