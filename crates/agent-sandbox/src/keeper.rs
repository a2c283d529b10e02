//! The keeper: a small process of our own that runs the session's podman service and outlives the launcher.
//!
//! It waits for the launcher's last word or, on its pidfd, for its death, and then sees to it that nothing of the
//! session is left: `kill -9` of the launcher included. It is the launcher's program started under another name.

mod launcher_side;
mod service;

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use crate::podman::Client;
use crate::session::{SessionDir, undo_by_label};
pub(crate) use launcher_side::Keeper;
use service::Service;

/// The name the program is started under to be the keeper. What it is called on the command line decides nothing else.
pub(crate) const NAME: &str = "agent-sandbox-keeper";

/// The launcher's word that everything is made, so that no request to make more is under way any more.
const UP: u8 = b'u';

/// The launcher's last word: it has undone everything itself. Silence means that it has not.
const DONE: u8 = b'd';

/// How long undoing a session may take. Seconds on a slow machine; what is left then is swept at the next start.
const UNDO_LIMIT: Duration = Duration::from_secs(60);

/// The keeper's whole life.
pub(crate) fn main(session_dir: PathBuf) -> ExitCode {
    let Some(dir) = SessionDir::existing(session_dir) else {
        return ExitCode::FAILURE;
    };
    // Out of reach of the terminal's signals, and not in the way of anybody's unmount.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let terminal = Terminal::of_stdout();
    let launcher = getppid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let service = Service::start(&dir);
    let Ok(service) = service else {
        // The launcher sees the exit and reads the log, and removes the directory.
        return ExitCode::FAILURE;
    };
    match wait_for_the_end(launcher.as_ref(), &service) {
        End::Done => {
            service.stop();
            let _ = dir.remove();
            ExitCode::SUCCESS
        }
        End::ServiceGone => {
            // Wait for the launcher to notice and give up; then undo with a new service.
            wait_for_the_launcher(launcher.as_ref());
            terminal.restore();
            service.stop();
            undo(&dir, None)
        }
        End::LauncherGone { up } => {
            terminal.restore();
            if up {
                undo(&dir, Some(service))
            } else {
                // What the launcher asked for last may still be under way: no answer tells when it is made.
                service.stop();
                undo(&dir, None)
            }
        }
    }
}

enum End {
    Done,
    LauncherGone { up: bool },
    ServiceGone,
}

fn wait_for_the_end(launcher: Option<&OwnedFd>, service: &Service) -> End {
    let stdin = std::io::stdin();
    let service_pidfd = service.pidfd();
    let mut up = false;
    loop {
        let mut polled = vec![
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&service_pidfd, PollFlags::IN),
        ];
        polled.extend(launcher.map(|launcher| PollFd::new(launcher, PollFlags::IN)));
        if poll(&mut polled, None).is_err() {
            continue;
        }
        let said = polled.first().is_some_and(|fd| !fd.revents().is_empty());
        let service_ended = polled.get(1).is_some_and(|fd| !fd.revents().is_empty());
        let launcher_ended = polled.get(2).is_some_and(|fd| !fd.revents().is_empty());
        if said {
            match next_word() {
                Some(UP) => up = true,
                Some(DONE) => return End::Done,
                _ => return End::LauncherGone { up },
            }
            continue;
        }
        if launcher_ended {
            return End::LauncherGone { up };
        }
        if service_ended {
            return End::ServiceGone;
        }
    }
}

fn next_word() -> Option<u8> {
    let mut word = [0; 1];
    let read = rustix::io::read(std::io::stdin().as_fd(), &mut word);
    read.is_ok_and(|count| count == 1).then_some(word[0])
}

fn wait_for_the_launcher(launcher: Option<&OwnedFd>) {
    let stdin = std::io::stdin();
    let mut polled = vec![PollFd::new(&stdin, PollFlags::IN)];
    polled.extend(launcher.map(|launcher| PollFd::new(launcher, PollFlags::IN)));
    while poll(&mut polled, None).is_err() {}
}

/// Removes everything that carries the session's label, with the service that runs or with a new one.
fn undo(dir: &SessionDir, running: Option<Service>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let service = running.map_or_else(|| Service::start(dir), Ok);
    let (Ok(runtime), Ok(mut service)) = (runtime, service) else {
        return ExitCode::FAILURE;
    };
    let undone = runtime.block_on(async {
        let client = Client::new(&dir.socket());
        let work = async {
            service.answers(&client).await?;
            undo_by_label(&client, dir.name()).await.map_err(std::io::Error::other)
        };
        tokio::time::timeout(UNDO_LIMIT, work).await
    });
    service.stop();
    let failed = match undone {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("it took more than {} s", UNDO_LIMIT.as_secs())),
    };
    if let Some(failed) = failed {
        // The launcher, if it still lives, shows the last lines of this file.
        let log = std::fs::File::options().append(true).open(dir.service_log());
        let _ = log.and_then(|mut log| writeln!(log, "undoing the session failed: {failed}"));
        return ExitCode::FAILURE;
    }
    let _ = dir.remove();
    ExitCode::SUCCESS
}

/// The user's terminal, if the launcher passed it on: a launcher that was killed leaves it in raw mode.
struct Terminal(Option<Termios>);

impl Terminal {
    fn of_stdout() -> Self {
        let stdout = std::io::stdout();
        Self(if isatty(&stdout) { tcgetattr(&stdout).ok() } else { None })
    }

    fn restore(&self) {
        if let Some(modes) = &self.0 {
            let _ = tcsetattr(std::io::stdout(), OptionalActions::Now, modes);
        }
    }
}

fn raw_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
