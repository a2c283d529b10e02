//! PostgreSQL with TLS, a cluster of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::directory;
use crate::lab::certs::Authority;
use crate::lab::netns::Namespace;
use crate::lab::process::{Process, run};
use crate::lab::world;

/// PostgreSQL does not run as root.
const AS_POSTGRES: [&str; 5] = [
    "--reuid=postgres",
    "--regid=postgres",
    "--init-groups",
    "--inh-caps=-all",
    "--",
];

pub(super) fn start(origin: &Namespace, authority: &Authority) -> Process {
    let directory = directory("postgres");
    let (certificate, key) = authority.issue("db", &["db.example"]);
    fs::copy(certificate, directory.join("server.crt")).unwrap();
    fs::copy(key, directory.join("server.key")).unwrap();
    run(
        Command::new("chown").args(["-R", "postgres:postgres", "/run/lab/postgres"]),
        10,
    )
    .ok();
    let initdb = programs().join("initdb");
    let mut command = Command::new("setpriv");
    command
        .args(AS_POSTGRES)
        .arg(initdb)
        .args(["--no-sync", "--auth=trust", "-D", "/run/lab/postgres/data"]);
    run(command.current_dir(&directory), 120).ok();
    fs::write(
        directory.join("data/pg_hba.conf"),
        "local all all trust\nhostssl all all 198.51.100.0/24 trust\n",
    )
    .unwrap();
    let settings = [
        &format!("listen_addresses={}", world::POSTGRES),
        "unix_socket_directories=/run/lab/postgres",
        "ssl=on",
        "ssl_cert_file=/run/lab/postgres/server.crt",
        "ssl_key_file=/run/lab/postgres/server.key",
        "fsync=off",
        "shared_buffers=4MB",
        "dynamic_shared_memory_type=mmap",
    ];
    let mut command = origin.command("setpriv");
    command
        .args(AS_POSTGRES)
        .arg(programs().join("postgres"))
        .args(["-D", "/run/lab/postgres/data"]);
    for setting in settings {
        command.args(["-c", setting]);
    }
    Process::start("postgres", &mut command)
}

/// Debian keeps the server's programs in a directory named after the version.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("package postgresql");
    let mut versions: Vec<_> = versions.map(|entry| entry.unwrap().path().join("bin")).collect();
    versions.retain(|path| path.join("initdb").exists());
    versions.sort();
    versions.pop().expect("a PostgreSQL server under /usr/lib/postgresql")
}
