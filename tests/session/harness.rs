//! Runs the launcher as a user would, and looks afterwards whether anything of it is left.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What the sandboxes of the tests may reach: names of the lab's stand-in internet.
pub(crate) const ALLOWLIST: &str = "\
api.anthropic.com
github.com:22
.example.com
db.example.com:5432
db.example.com:7000
";

/// How long what a session made may outlive a launcher that was killed.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(5);

/// The program under test.
pub(crate) fn launcher() -> PathBuf {
    PathBuf::from(std::env::var_os("AGENT_SANDBOX_TEST_LAUNCHER").expect("AGENT_SANDBOX_TEST_LAUNCHER"))
}

/// A person at the machine: a home with configuration and a directory to launch from, of one test alone.
pub(crate) struct User {
    pub(crate) home: PathBuf,
    pub(crate) launch_dir: PathBuf,
    environment: Vec<(String, String)>,
}

impl User {
    /// A user with the tests' allowlist, in `~/src/N`.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let home =
            PathBuf::from(std::env::var_os("HOME").unwrap()).join(format!("users/{}-{number}", std::process::id()));
        let launch_dir = home.join("src/repo");
        std::fs::create_dir_all(&launch_dir).unwrap();
        let user = Self {
            home,
            launch_dir,
            environment: Vec::new(),
        };
        let config = user.home.join(".config/agent-sandbox");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("allowed-hosts"), ALLOWLIST).unwrap();
        // Podman stays as the machine has it: the user's own home decides only what the launcher reads.
        let containers = PathBuf::from(std::env::var_os("HOME").unwrap()).join(".config/containers");
        std::os::unix::fs::symlink(containers, user.home.join(".config/containers")).unwrap();
        user.set(
            "AGENT_SANDBOX_HOME_VOLUME",
            &format!("test-home-{}", std::process::id()),
        )
    }

    /// Sets a variable for the launcher.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The launcher's command line, with this user's home.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.wrapped(&[], arguments)
    }

    /// The same, started by another program.
    pub(crate) fn wrapped(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let launcher = launcher();
        let mut words = wrapper.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
        words.push(launcher.into_os_string());
        words.extend(arguments.iter().map(std::ffi::OsString::from));
        let mut command = Command::new(&words[0]);
        let storage = PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share");
        command
            .args(&words[1..])
            .current_dir(&self.launch_dir)
            .env("HOME", &self.home)
            .env("XDG_DATA_HOME", storage);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the launcher to its end with nothing on standard input.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        self.run_with(arguments, b"")
    }

    /// Runs a command in the sandbox.
    pub(crate) fn exec(&self, command: &[&str]) -> Finished {
        self.run(&[&["--exec"], command].concat())
    }

    /// Runs a shell script in the sandbox.
    pub(crate) fn sh(&self, script: &str) -> Finished {
        self.exec(&["sh", "-c", script])
    }

    /// Runs the launcher to its end with `input` on standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let mut session = self.start(arguments);
        let mut stdin = session.child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = thread::spawn(move || drop(stdin.write_all(&input)));
        let finished = session.finish();
        writer.join().unwrap();
        finished
    }

    /// Starts the launcher with pipes.
    pub(crate) fn start(&self, arguments: &[&str]) -> Session {
        let mut command = self.command(arguments);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Session { pid: child.id(), child }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// A launcher that runs.
pub(crate) struct Session {
    pub(crate) child: Child,
    pub(crate) pid: u32,
}

impl Session {
    /// Sends a signal to the launcher.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until standard output begins with `text`.
    pub(crate) fn wait_for_output(&mut self, text: &str) {
        let stdout = self.child.stdout.as_mut().unwrap();
        let mut got = vec![0; text.len()];
        stdout
            .read_exact(&mut got)
            .unwrap_or_else(|error| panic!("waiting for {text:?}: {error}"));
        assert_eq!(String::from_utf8_lossy(&got), text);
    }

    /// Ends standard input and waits for the end; the output that was not read yet, and nothing left behind.
    pub(crate) fn finish(mut self) -> Finished {
        drop(self.child.stdin.take());
        let mut stdout = self.child.stdout.take();
        let mut stderr = self.child.stderr.take().unwrap();
        let out = thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(stdout) = &mut stdout {
                stdout.read_to_end(&mut bytes).unwrap();
            }
            bytes
        });
        let mut err = Vec::new();
        stderr.read_to_end(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        nothing_left_of(self.pid, Duration::ZERO);
        Finished {
            stdout: String::from_utf8_lossy(&out.join().unwrap()).into_owned(),
            stderr: String::from_utf8_lossy(&err).into_owned(),
            code: status.code(),
            signal: status.signal(),
        }
    }
}

/// A launcher that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl Finished {
    /// The output of a command that succeeded and had nothing to complain about.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        &self.stdout
    }

    /// The one message of a session that did not start.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{self:?}");
        &self.stderr
    }
}

/// Panics if anything that a launcher made is still there after `patience`.
#[track_caller]
pub(crate) fn nothing_left_of(launcher: u32, patience: Duration) {
    let deadline = Instant::now() + patience;
    loop {
        let left = left_of(launcher);
        if left.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "left of launcher {launcher} after {patience:?}: {left:#?}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

fn left_of(launcher: u32) -> Vec<String> {
    let label = format!("label=agent-sandbox.launcher-pid={launcher}");
    let mut left = Vec::new();
    for list in [
        &["ps", "--all", "--quiet", "--filter", &label][..],
        &["pod", "ps", "--quiet", "--filter", &label],
        &["network", "ls", "--quiet", "--filter", &label],
    ] {
        left.extend(podman(list).lines().map(|line| format!("{}: {line}", list[0])));
    }
    let mark = format!("agent-sandbox-{launcher}-");
    let runtime_dir = std::env::var("XDG_RUNTIME_DIR").unwrap();
    for entry in Path::new(&runtime_dir).read_dir().unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        left.extend(name.starts_with(&mark).then(|| format!("directory {name}")));
    }
    for process in Path::new("/proc").read_dir().unwrap().flatten() {
        let Ok(command) = std::fs::read(process.path().join("cmdline")) else {
            continue;
        };
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        left.extend(command.contains(&mark).then(|| format!("process {command}")));
    }
    left
}

/// Runs podman itself and returns what it prints.
#[track_caller]
pub(crate) fn podman(arguments: &[&str]) -> String {
    let output = Command::new("podman").args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "podman {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
