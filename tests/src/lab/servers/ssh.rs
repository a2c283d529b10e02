//! sshd with keys made in the run.

use std::fs;
use std::process::Command;

use super::directory;
use crate::lab::netns::Namespace;
use crate::lab::process::{Process, run};
use crate::lab::sandbox::DIR;
use crate::lab::world;

pub(super) fn start(origin: &Namespace) -> Process {
    let directory = directory("ssh");
    for key in ["host", "client"] {
        let file = directory.join(key);
        run(
            Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(&file),
            10,
        )
        .ok();
    }
    let host_key = fs::read_to_string(directory.join("host.pub")).unwrap();
    fs::write(directory.join("known_hosts"), format!("git.example {host_key}")).unwrap();
    let config = format!(
        "ListenAddress {}\nHostKey {DIR}/ssh/host\nAuthorizedKeysFile {DIR}/ssh/client.pub\nPermitRootLogin yes\n\
         PasswordAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\nUseDNS no\n",
        world::SSH
    );
    fs::write(directory.join("sshd_config"), config).unwrap();
    Process::start(
        "sshd",
        origin
            .command("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", "/run/lab/ssh/sshd_config"]),
    )
}

/// ssh options for a client that knows the server's key and has a key that the server accepts.
#[must_use]
pub fn client_key() -> [&'static str; 8] {
    [
        "-F",
        "none",
        "-i",
        "/run/lab/ssh/client",
        "-o",
        "UserKnownHostsFile=/run/lab/ssh/known_hosts",
        "-o",
        "BatchMode=yes",
    ]
}
