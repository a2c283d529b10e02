//! A real terminal: a pty whose other end the test holds.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use system_tests::lab::suite::Test;

use crate::harness::{GONE_WITHIN, Session, User, nothing_left_of};

pub(crate) const TESTS: &[Test] = &[
    Test::limited("600_the_first_size_and_every_resize", 90, sizes),
    Test::limited("601_keys_go_to_the_program", 90, keys),
    Test::limited(
        "602_the_terminal_is_restored_after_a_normal_exit",
        90,
        restored_after_exit,
    ),
    Test::limited(
        "603_the_terminal_is_restored_after_signals_and_kill_9",
        180,
        restored_after_kill,
    ),
    Test::limited(
        "604_the_terminal_is_restored_after_podman_dies",
        90,
        restored_after_podman_dies,
    ),
    Test::limited("605_a_closed_terminal_ends_the_session", 90, a_closed_terminal),
    Test::limited("606_the_program_knows_its_terminal", 60, the_program_knows_its_terminal),
];

struct Terminal {
    ours: File,
    theirs: OwnedFd,
    shown: Arc<Mutex<String>>,
    before: Termios,
}

impl Terminal {
    fn new(columns: u16, rows: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let before = tcgetattr(&theirs).unwrap();
        let terminal = Self {
            ours: File::from(ours),
            theirs,
            shown: Arc::default(),
            before,
        };
        terminal.resize(columns, rows);
        let (mut reader, shown) = (terminal.ours.try_clone().unwrap(), Arc::clone(&terminal.shown));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                shown
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        terminal
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.ours, size).unwrap();
    }

    /// Starts the launcher with this terminal as its controlling one.
    fn start(&self, user: &User, script: &str) -> Session {
        let mut command = user.wrapped(&["setsid", "--ctty"], &["--exec", "sh", "-c", script]);
        let end = || Stdio::from(self.theirs.try_clone().unwrap());
        let child = command
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Session { pid: child.id(), child }
    }

    fn type_keys(&self, keys: &str) {
        (&self.ours).write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.shown.lock().unwrap().contains(text) {
            assert!(
                Instant::now() < deadline,
                "{text:?} is not shown: {:?}",
                self.shown.lock().unwrap()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.theirs)
            .unwrap()
            .local_modes
            .intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    #[track_caller]
    fn is_restored(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let same = |modes: Termios| {
            modes.local_modes == self.before.local_modes
                && modes.input_modes == self.before.input_modes
                && modes.output_modes == self.before.output_modes
        };
        while !same(tcgetattr(&self.theirs).unwrap()) {
            assert!(Instant::now() < deadline, "the terminal is not as before");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn end(mut session: Session) -> Option<i32> {
    session.child.wait().unwrap().code()
}

/// podman #3946, #10560: 80x24 first, or a resize that comes late.
fn sizes() {
    let user = User::new();
    let terminal = Terminal::new(101, 33);
    let session = terminal.start(&user, "stty size; while read line; do stty size; done");
    terminal.wait_for("33 101");
    for (columns, rows) in [(77, 21), (140, 50)] {
        terminal.resize(columns, rows);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !terminal
            .shown
            .lock()
            .unwrap()
            .contains(&format!("{rows} {columns}\r\n"))
        {
            assert!(
                Instant::now() < deadline,
                "the program does not see {columns}x{rows}: {:?}",
                terminal.shown.lock().unwrap()
            );
            terminal.type_keys("\r");
            thread::sleep(Duration::from_millis(500));
        }
    }
    terminal.type_keys("\x04");
    assert_eq!(end(session), Some(0));
}

/// podman #4208: Ctrl-P swallowed.
fn keys() {
    let user = User::new();
    let terminal = Terminal::new(80, 24);
    let script = "trap 'echo interrupted' INT; stty raw -echo; echo ready; \
                  head -c 5 | od -An -tx1; stty sane; echo again; sleep 60; echo over";
    let session = terminal.start(&user, script);
    terminal.wait_for("ready");
    assert!(terminal.is_raw());
    // Ctrl-C, Ctrl-P, Ctrl-Q, Ctrl-Z, Ctrl-\ as bytes, then Ctrl-C as a signal.
    terminal.type_keys("\x03\x10\x11\x1a\x1c");
    terminal.wait_for("03 10 11 1a 1c");
    terminal.wait_for("again");
    terminal.type_keys("\x03");
    terminal.wait_for("interrupted");
    terminal.wait_for("over");
    assert_eq!(end(session), Some(0));
}

fn restored_after_exit() {
    let user = User::new();
    let terminal = Terminal::new(80, 24);
    let session = terminal.start(&user, "echo up; exit 7");
    assert_eq!(end(session), Some(7));
    terminal.is_restored(Duration::ZERO);
    terminal.wait_for("up\r\n");
}

fn restored_after_kill() {
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        let user = User::new();
        let terminal = Terminal::new(80, 24);
        let session = terminal.start(&user, "echo up; sleep 600");
        terminal.wait_for("up");
        assert!(terminal.is_raw());
        session.signal(signal);
        let pid = session.pid;
        let code = end(session);
        assert_eq!(code, (signal != Signal::KILL).then_some(130), "{signal:?}");
        terminal.is_restored(if signal == Signal::KILL {
            GONE_WITHIN
        } else {
            Duration::ZERO
        });
        nothing_left_of(pid, GONE_WITHIN);
    }
}

fn restored_after_podman_dies() {
    let user = User::new();
    let terminal = Terminal::new(80, 24);
    let session = terminal.start(&user, "echo up; sleep 600");
    terminal.wait_for("up");
    crate::endings::kill_service(&session);
    let pid = session.pid;
    assert_eq!(end(session), Some(125));
    terminal.is_restored(Duration::ZERO);
    nothing_left_of(pid, GONE_WITHIN);
}

fn a_closed_terminal() {
    let user = User::new();
    let terminal = Terminal::new(80, 24);
    let session = terminal.start(&user, "echo up; sleep 600");
    terminal.wait_for("up");
    let pid = session.pid;
    // The kernel sends SIGHUP when the last descriptor of our end is closed; the reading thread has one.
    session.signal(Signal::HUP);
    drop(terminal);
    end(session);
    nothing_left_of(pid, GONE_WITHIN);
}

fn the_program_knows_its_terminal() {
    let user = User::new();
    let terminal = Terminal::new(80, 24);
    let session = terminal.start(&user, "test -t 0 && test -t 1 && test -t 2 && echo tty $TERM");
    assert_eq!(end(session), Some(0));
    terminal.wait_for("tty xterm-256color\r\n");
}
