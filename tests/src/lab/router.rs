//! Routers and forwarders under test, and the events they write.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use super::binary;
use super::netns::Namespace;
use super::process::Process;
use super::sandbox::DIR;
use super::world::Lease;

/// How long an event may take, in seconds.
const EVENT_LIMIT: u64 = 10;

/// A router that is yet to start.
#[derive(Clone, Debug)]
pub struct RouterSetup {
    namespace: Namespace,
    address: Ipv4Addr,
    allowlist: PathBuf,
    prefix: Vec<String>,
    arguments: Vec<String>,
    lease: Option<Arc<Lease>>,
}

impl RouterSetup {
    /// A router in `namespace` that listens on `address`.
    #[must_use]
    pub fn new(namespace: &Namespace, address: Ipv4Addr) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let directory = PathBuf::from(format!("{DIR}/router/{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&directory).unwrap();
        Self {
            namespace: namespace.clone(),
            address,
            allowlist: directory.join("allowed-hosts"),
            prefix: Vec::new(),
            arguments: Vec::new(),
            lease: None,
        }
    }

    /// Holds on to its address as long as it may start again.
    pub(super) fn keep(mut self, lease: Lease) -> Self {
        self.lease = Some(Arc::new(lease));
        self
    }

    /// Writes its allowlist.
    #[must_use]
    pub fn allow(self, text: &str) -> Self {
        fs::write(&self.allowlist, text).unwrap();
        self
    }

    /// More options.
    #[must_use]
    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Runs it through another command, such as `prlimit --nofile=64`.
    #[must_use]
    pub fn through(mut self, words: &[&str]) -> Self {
        self.prefix = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Runs it in another view of the network (other resolver, other hosts file).
    #[must_use]
    pub fn in_view(mut self, namespace: &Namespace) -> Self {
        self.namespace = namespace.clone();
        self
    }

    /// The path of its allowlist.
    #[must_use]
    pub fn allowlist(&self) -> &PathBuf {
        &self.allowlist
    }

    /// The address it will listen on.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The command line.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut words = self.prefix.clone();
        words.push(binary::as_router().display().to_string());
        let mut command = self.namespace.command(&words[0]);
        command.args(&words[1..]);
        command
            .arg("--allowlist")
            .arg(&self.allowlist)
            .args(["--listen", &self.address.to_string()]);
        command.args(&self.arguments);
        command
    }

    /// Starts it and waits until it says that it is ready.
    #[must_use]
    pub fn start(self) -> Router {
        let process = Process::start("as-router", &mut self.command());
        let router = Router {
            setup: self.clone(),
            process,
            address: self.address,
            allowlist: self.allowlist,
        };
        router.event("ready", |event| event["event"] == "ready");
        router
    }
}

/// A running router.
#[derive(Debug)]
pub struct Router {
    /// Its process.
    pub process: Process,
    /// Its address on the session network.
    pub address: Ipv4Addr,
    allowlist: PathBuf,
    setup: RouterSetup,
}

impl Router {
    /// Starts it again in the same place after its end.
    #[must_use]
    pub fn restart(&self) -> Self {
        self.setup.clone().start()
    }

    /// The path of its allowlist.
    #[must_use]
    pub const fn allowlist(&self) -> &PathBuf {
        &self.allowlist
    }

    /// One of its ports.
    #[must_use]
    pub fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.address, port))
    }

    /// Waits for an event that `wanted` accepts, among all since the start.
    #[track_caller]
    pub fn event(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.event_after(0, what, wanted)
    }

    /// The same among those after the first `skip` lines of output (see [`Self::mark`]).
    #[track_caller]
    pub fn event_after(&self, skip: usize, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_event(&self.process, skip, what, wanted)
    }

    /// Where the output is now.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.process.stdout.count()
    }

    /// Waits for the refusal of `name` with `code`.
    #[track_caller]
    pub fn refused(&self, code: &str, name: &str) -> Value {
        self.event(&format!("refusal {code} of {name:?}"), |event| {
            event["event"] == "refuse" && event["code"] == code && (name.is_empty() || event["name"] == name)
        })
    }

    /// All events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.process.stdout.all().iter().map(|line| parse(line)).collect()
    }

    /// Replaces the allowlist file, without telling.
    pub fn write_allowlist(&self, text: &str) {
        fs::write(&self.allowlist, text).unwrap();
    }

    /// Replaces the allowlist, sends SIGHUP and gives the event that answers: `reloaded` or `fault`.
    pub fn reload(&self, text: &str) -> Value {
        self.write_allowlist(text);
        reload(&self.process)
    }

    /// Asks it to stop and waits for its end.
    pub fn stop(&mut self) -> ExitStatus {
        self.process.signal(Signal::TERM);
        self.process.wait(10)
    }
}

/// A running forwarder.
#[derive(Debug)]
pub struct Forwarder {
    /// Its process.
    pub process: Process,
}

impl Forwarder {
    /// Starts one in `pod` for the policy of `router` and waits until it is ready.
    #[must_use]
    pub fn start(pod: &Namespace, router: &Router, arguments: &[&str]) -> Self {
        let mut command = pod.command(binary::as_router());
        command
            .args(["forward", "--router", &router.address.to_string(), "--allowlist"])
            .arg(&router.allowlist);
        let process = Process::start("as-router forward", command.args(arguments));
        wait_event(&process, 0, "ready", |event| event["event"] == "ready");
        Self { process }
    }

    /// Waits for one of its events.
    #[track_caller]
    pub fn event(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_event(&self.process, 0, what, wanted)
    }

    /// Sends SIGHUP and gives the event that answers.
    pub fn reload(&self) -> Value {
        reload(&self.process)
    }
}

fn reload(process: &Process) -> Value {
    let mark = process.stdout.count();
    process.signal(Signal::HUP);
    wait_event(process, mark, "the answer to SIGHUP", |event| {
        event["event"] == "reloaded" || event["code"] == "reload-failed"
    })
}

#[track_caller]
fn wait_event(process: &Process, skip: usize, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let found = process.stdout.find(skip, EVENT_LIMIT, |line| {
        Some(parse(line)).filter(|event| wanted(event))
    });
    found.unwrap_or_else(|| panic!("no event within {EVENT_LIMIT} s: {what}\n{process}"))
}

/// Every line of stdout is one JSON object with a time and a kind, whatever happens.
fn parse(line: &str) -> Value {
    let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line:?}"));
    assert!(
        event.is_object() && event["event"].is_string(),
        "not an event: {line:?}"
    );
    assert!(
        !line.bytes().any(|byte| byte < 0x20 || byte == 0x7f),
        "control characters in an event: {line:?}"
    );
    event
}
