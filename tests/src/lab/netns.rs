//! Network namespaces, the commands that run in them and the sockets that open in them.
//!
//! Programs in them trust the lab's CA as if it were the system's.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::process::run;
use super::sandbox::DIR;

/// Puts the namespace's files in place and becomes the program.
const ENTER: &str = r#"
    mount --bind "$1/resolv.conf" /etc/resolv.conf
    mount --bind "$1/hosts" /etc/hosts
    mount --bind /run/lab/ca/trust /etc/ssl/certs
    cd "$2"
    shift 2
    exec "$@"
"#;

/// A network namespace together with the `/etc/resolv.conf` and `/etc/hosts` that programs in it see.
#[derive(Clone, Debug)]
pub struct Namespace {
    network: String,
    files: PathBuf,
}

impl Namespace {
    /// A new one with its loopback up and 192.0.2.2 or whatever `nameserver` is for its resolver.
    pub fn new(network: &str, nameserver: Ipv4Addr) -> Self {
        run(Command::new("ip").args(["netns", "add", network]), 10).ok();
        let namespace = Self::with_files(network, network, nameserver);
        namespace.ip("link set lo up");
        namespace
    }

    /// The same network seen with another resolver.
    #[must_use]
    pub fn view(&self, name: &str, nameserver: Ipv4Addr) -> Self {
        Self::with_files(&self.network, name, nameserver)
    }

    fn with_files(network: &str, name: &str, nameserver: Ipv4Addr) -> Self {
        let files = Path::new(DIR).join("ns").join(name);
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join("resolv.conf"), format!("nameserver {nameserver}\n")).unwrap();
        fs::write(files.join("hosts"), "127.0.0.1 localhost\n::1 localhost\n").unwrap();
        Self {
            network: network.to_owned(),
            files,
        }
    }

    /// Replaces `/etc/resolv.conf` for the programs that will start in it, in place.
    pub fn write_resolv_conf(&self, text: &str) {
        fs::write(self.files.join("resolv.conf"), text).unwrap();
    }

    /// Replaces `/etc/hosts`.
    pub fn write_hosts(&self, text: &str) {
        fs::write(self.files.join("hosts"), text).unwrap();
    }

    /// A command that will run in it, in a mount namespace of its own: one that is kept as a file cannot be had reliably
    /// (the kernel's check against loops compares numbers that are not in order across processors, and says EINVAL).
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.network))
            .args([
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-ec",
                ENTER,
                "sh",
            ])
            .arg(&self.files)
            .arg(DIR)
            .arg(program);
        command
    }

    /// Runs a shell line in it and gives its output; it must succeed.
    pub fn sh(&self, line: &str, seconds: u64) -> String {
        run(self.command("sh").args(["-ec", line]), seconds).ok()
    }

    /// `ip WORDS` in it.
    pub fn ip(&self, words: &str) {
        run(
            Command::new("ip").args(["-n", &self.network]).args(words.split(' ')),
            10,
        )
        .ok();
    }

    /// Calls `f` on a thread inside the namespace: sockets that it opens stay there, wherever they are used.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        let handle = File::open(format!("/run/netns/{}", self.network)).unwrap();
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                f()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Joins this namespace to `bridge` of another one, with `address` on this side.
    pub fn plug_into(&self, other: &Self, bridge: &str, address: Ipv4Addr) {
        let port = format!("p{}", self.network);
        run(
            Command::new("ip")
                .args([
                    "-n",
                    &self.network,
                    "link",
                    "add",
                    "eth0",
                    "type",
                    "veth",
                    "peer",
                    "name",
                    &port,
                ])
                .args(["netns", &other.network]),
            10,
        )
        .ok();
        other.ip(&format!("link set {port} master {bridge} up"));
        self.ip(&format!("addr add {address}/24 dev eth0"));
        self.ip("link set eth0 up");
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.network
    }
}
