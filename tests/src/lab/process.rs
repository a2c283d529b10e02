//! Child processes that always end: every wait has a deadline, and a dropped process is a dead one.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::sandbox::DIR;
use super::wait::limit;

/// A server or another long-running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    /// What it wrote to stdout so far.
    pub stdout: Lines,
    /// What it wrote to stderr so far.
    pub stderr: Lines,
}

impl Process {
    /// Starts `command` with its output collected.
    pub fn start(name: &str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}: {command:?}"));
        let stdout = Lines::collect(child.stdout.take().unwrap());
        let stderr = Lines::collect(child.stderr.take().unwrap());
        Self {
            name: name.to_owned(),
            child,
            stdout,
            stderr,
        }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// The exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the end and the last line of output; panics after `seconds`.
    pub fn wait(&mut self, seconds: u64) -> ExitStatus {
        let status = wait_child(&mut self.child, limit(seconds))
            .unwrap_or_else(|| panic!("{} still runs after {seconds} s\n{self}", self.name));
        self.stdout.wait_end();
        self.stderr.wait_end();
        status
    }

    /// User and system CPU time of the process so far, in clock ticks of 10 ms (proc(5): fields 14 and 15 of stat).
    #[must_use]
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let after_name = stat.rsplit_once(") ").unwrap().1;
        let fields: Vec<&str> = after_name.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Open descriptors of the process.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--- {} stdout\n{}\n--- stderr\n{}",
            self.name,
            self.stdout.tail(),
            self.stderr.tail()
        )
    }
}

/// The output of a process, line by line, as it comes.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    fn collect(from: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let writer = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                writer
                    .0
                    .state
                    .lock()
                    .unwrap()
                    .lines
                    .push(String::from_utf8_lossy(&line).into_owned());
                writer.0.changed.notify_all();
            }
            writer.0.state.lock().unwrap().ended = true;
            writer.0.changed.notify_all();
        });
        lines
    }

    /// All lines so far.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.state.lock().unwrap().lines.clone()
    }

    /// How many lines there are so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.state.lock().unwrap().lines.len()
    }

    /// The last lines, for a message.
    #[must_use]
    pub fn tail(&self) -> String {
        let lines = self.all();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Everything as one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.all().join("\n")
    }

    /// The first value that `find` gives for a line from number `from` on; `None` after `seconds` or at the end of the
    /// output.
    pub fn find<T>(&self, from: usize, seconds: u64, mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + limit(seconds);
        let mut state = self.0.state.lock().unwrap();
        let mut next = from;
        loop {
            while let Some(line) = state.lines.get(next) {
                next += 1;
                if let Some(found) = find(line) {
                    return Some(found);
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.ended || left.is_zero() {
                return None;
            }
            state = self.0.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits (at most 5 s) until the writer is gone.
    fn wait_end(&self) {
        let state = self.0.state.lock().unwrap();
        let _ended = self
            .0
            .changed
            .wait_timeout_while(state, Duration::from_secs(5), |state| !state.ended)
            .unwrap();
    }
}

/// A finished program.
#[derive(Debug)]
pub struct Done {
    command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// All of stdout.
    pub stdout: Vec<u8>,
    /// All of stderr.
    pub stderr: Vec<u8>,
}

impl Done {
    /// The exit code; 128 and more for a signal.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// stdout as text.
    #[must_use]
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text.
    #[must_use]
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// stdout of a program that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.status.success(), "failed: {self}");
        self.out()
    }

    /// stdout and stderr of a program that must have failed with an exit code of its own.
    #[track_caller]
    pub fn fails(self) -> String {
        assert!(
            self.status.code().is_some_and(|code| code != 0),
            "should have failed: {self}"
        );
        self.out() + &self.err()
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clip = |text: String| {
            if text.len() > 4000 {
                format!("{text:.4000}...")
            } else {
                text
            }
        };
        write!(
            f,
            "{}: {}\n{}\n{}",
            self.command,
            self.status,
            clip(self.out()),
            clip(self.err())
        )
    }
}

/// Runs a program to its end; panics with its output so far when it takes longer than `seconds`.
pub fn run(command: &mut Command, seconds: u64) -> Done {
    run_with_input(command, &[], seconds)
}

/// The same with bytes for its standard input, which is then closed.
pub fn run_with_input(command: &mut Command, input: &[u8], seconds: u64) -> Done {
    let text = describe(command);
    let stdin = if input.is_empty() {
        Stdio::null()
    } else {
        Stdio::piped()
    };
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {text}: {error}"));
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        thread::spawn(move || std::io::Write::write_all(&mut stdin, &input));
    }
    let stdout = read_all(child.stdout.take().unwrap());
    let stderr = read_all(child.stderr.take().unwrap());
    let status = wait_child(&mut child, limit(seconds));
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let show = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4000)]).into_owned();
    let status = status.unwrap_or_else(|| panic!("{text}: over {seconds} s\n{}\n{}", show(&stdout), show(&stderr)));
    Done {
        command: text,
        status,
        stdout,
        stderr,
    }
}

/// The command as one would type it, without the lab's own prefix: what stands before the directory to start in.
fn describe(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let prefix = words
        .iter()
        .take(20)
        .rposition(|word| word == DIR)
        .map_or(0, |at| at + 1);
    words[prefix..].join(" ")
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Waits by pidfd, so that no time is spent polling.
fn wait_child(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap(),
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let _ = poll(&mut fds, Some(&limit));
    child.try_wait().unwrap()
}
