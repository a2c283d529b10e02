//! `podman system service` on a socket of its own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::raw_pid;
use crate::owner::Owner;
use crate::podman::Client;
use crate::session::SessionDir;

/// How long the service may take to end after SIGTERM. It needs a few milliseconds when no request is under way.
const STOP_LIMIT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// How long it may take to answer. The first podman of a boot sets up its user namespace and refreshes its state.
pub(super) const START_LIMIT: Duration = Duration::from_secs(30);

/// How often it is asked whether it answers already.
pub(super) const START_INTERVAL: Duration = Duration::from_millis(2);

/// A running service.
pub(super) struct Service {
    child: Child,
    pidfd: OwnedFd,
}

impl Service {
    /// Starts the service of a session. What it says goes to the session's directory.
    pub(super) fn start(dir: &SessionDir) -> io::Result<Self> {
        let _ = std::fs::remove_file(dir.socket());
        let log = std::fs::File::create(dir.service_log())?;
        let mut command = Command::new("podman");
        command
            .args(["system", "service", "--time=0"])
            .arg(format!("unix://{}", dir.socket().display()));
        // These would turn it into a client of another service, or make it take over our caller's sockets.
        for variable in [
            "CONTAINER_HOST",
            "CONTAINER_CONNECTION",
            "LISTEN_FDS",
            "LISTEN_PID",
            "LISTEN_FDNAMES",
            "NOTIFY_SOCKET",
        ] {
            command.env_remove(variable);
        }
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(0);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let text = format!("cannot run podman: {error}; install podman 4.3 or newer\n");
                let _ = io::Write::write_all(&mut &log, text.as_bytes());
                return Err(error);
            }
        };
        let pid = raw_pid(child.id()).ok_or(io::ErrorKind::InvalidData)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        // One that has ended already is written down as nobody.
        if let Ok(this) = Owner::this_process() {
            let service = this.sibling(child.id()).unwrap_or_else(|_| this.nobody());
            let _ = std::fs::write(dir.service_file(), service.to_text());
        }
        Ok(Self { child, pidfd })
    }

    /// Readable when the service has ended.
    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Waits until the service answers.
    pub(super) async fn answers(&mut self, client: &Client) -> io::Result<()> {
        let started = Instant::now();
        loop {
            match client.version().await {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > START_LIMIT || self.child.try_wait()?.is_some() => {
                    return Err(io::Error::other(error));
                }
                Err(_) => tokio::time::sleep(START_INTERVAL).await,
            }
        }
    }

    /// Ends the service: politely first, so that what it is writing is written, then for good.
    pub(super) fn stop(mut self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::TERM);
        let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&STOP_LIMIT));
        // Podman's first process waits for a second one in the user namespace: whatever is left of both goes now. The
        // group's id cannot be another's before the first one is waited for.
        if let Some(pid) = raw_pid(self.child.id()) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
