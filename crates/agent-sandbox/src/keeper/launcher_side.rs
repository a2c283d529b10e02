//! The keeper as the launcher sees it.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::service::{START_INTERVAL, START_LIMIT};
use super::{DONE, NAME, UNDO_LIMIT, UP};
use crate::owner::{Life, Owner};
use crate::podman::{ApiError, Client};
use crate::session::{Cause, SessionDir, printable, undo_by_label};

/// The oldest podman whose API has all that a session asks for: keep-id with `uid=` and `gid=`.
const OLDEST: (u32, u32) = (4, 3);

/// The running keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    control: Option<ChildStdin>,
    dir: SessionDir,
    /// Whether the service ever answered: before that nothing can have been made.
    answered: bool,
}

impl Keeper {
    /// Starts the keeper of a session, and with it the session's podman service.
    pub(crate) fn start(dir: &SessionDir) -> io::Result<Self> {
        let stdin = io::stdin();
        // The keeper restores the terminal if the launcher cannot.
        let terminal = match rustix::termios::isatty(&stdin) {
            true => Stdio::from(stdin.as_fd().try_clone_to_owned()?),
            false => Stdio::null(),
        };
        let mut child = Command::new("/proc/self/exe")
            .arg0(NAME)
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(terminal)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self {
            control: child.stdin.take(),
            child,
            dir: dir.clone(),
            answered: false,
        })
    }

    /// Waits until the podman service answers.
    ///
    /// # Errors
    /// The service's own words if it ended; silence; or a podman that is too old.
    pub(crate) async fn client(&mut self) -> Result<Client, Cause> {
        let client = Client::new(&self.dir.socket());
        let started = Instant::now();
        loop {
            match client.version().await {
                Ok(version) if is_too_old(&version) => return Err(Cause::PodmanTooOld(version)),
                Ok(_) => {
                    self.answered = true;
                    return Ok(client);
                }
                Err(ApiError::Unreachable(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if self.child.try_wait()?.is_some() || self.service_is_gone() {
                return Err(Cause::ServiceEnded(self.last_words()));
            }
            if started.elapsed() > START_LIMIT {
                return Err(Cause::ServiceSilent(START_LIMIT.as_secs()));
            }
            tokio::time::sleep(START_INTERVAL).await;
        }
    }

    /// Says that everything is made.
    pub(crate) fn everything_is_made(&mut self) {
        if let Some(control) = &mut self.control {
            let _ = control.write_all(&[UP]);
        }
    }

    /// What the podman service wrote last.
    pub(crate) fn last_words(&self) -> Vec<String> {
        const KEPT: usize = 5;
        let text = std::fs::read(self.dir.service_log()).unwrap_or_default();
        let lines: Vec<_> = text
            .split(|&b| b == b'\n')
            .filter(|line| !line.is_empty())
            .map(printable)
            .collect();
        lines
            .get(lines.len().saturating_sub(KEPT)..)
            .unwrap_or_default()
            .to_vec()
    }

    /// Says the last word: everything is `undone`, or the keeper has to see to it. Waits until the keeper, and so
    /// podman's service, has ended; `false` if something may be left.
    pub(crate) async fn finish(mut self, undone: bool) -> bool {
        if let Some(mut control) = self.control.take()
            && undone
        {
            let _ = control.write_all(&[DONE]);
        }
        let started = Instant::now();
        let kept = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.success(),
                Ok(None) if started.elapsed() < UNDO_LIMIT + Duration::from_secs(5) => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                _ => return false,
            }
        };
        let words = self.last_words();
        let done = kept || self.finish_alone(undone).await;
        if !done {
            for line in words {
                eprintln!("agent-sandbox: {line}");
            }
        }
        done
    }

    /// The keeper failed, or was killed: what it would have done is done here.
    async fn finish_alone(&self, undone: bool) -> bool {
        let service = self.service().filter(|service| !is_gone(service));
        let undone = undone || !self.answered || {
            let client = Client::new(&self.dir.socket());
            service.is_some() && undo_by_label(&client, self.dir.name()).await.is_ok()
        };
        if let Some(service) = service {
            service.signal(rustix::process::Signal::TERM);
            let started = Instant::now();
            while !is_gone(&service) && started.elapsed() < Duration::from_secs(5) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        undone && self.dir.remove().is_ok()
    }

    /// Whether the service's process has ended, while the keeper may still wait for us.
    pub(crate) fn service_is_gone(&self) -> bool {
        self.service().is_some_and(|service| is_gone(&service))
    }

    fn service(&self) -> Option<Owner> {
        Owner::from_text(&std::fs::read_to_string(self.dir.service_file()).ok()?)
    }
}

fn is_gone(process: &Owner) -> bool {
    Owner::this_process().is_ok_and(|here| process.life(&here) == Life::Gone)
}

fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for (version, too_old) in [
            ("4.3.1", false),
            ("5.4.2", false),
            ("4.2.9", true),
            ("3.4.4", true),
            ("10.0", false),
        ] {
            assert_eq!(is_too_old(version), too_old, "{version}");
        }
    }
}
