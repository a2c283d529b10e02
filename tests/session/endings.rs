//! How sessions end: with the command, by signals, by `kill -9` at any moment; and what is left then: nothing.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use system_tests::lab::suite::Test;

use crate::harness::{GONE_WITHIN, Session, User, nothing_left_of, podman};

pub(crate) const TESTS: &[Test] = &[
    Test::limited("400_exit_codes_are_the_commands_own", 180, exit_codes),
    Test::limited("401_signals_end_the_session_with_130", 180, signals),
    Test::limited("402_kill_9_during_the_session", 60, kill_during_the_session),
    Test::limited("403_kill_9_at_every_step_of_the_start", 600, kill_at_every_step),
    Test::limited("404_interrupt_at_every_step_of_the_start", 600, interrupt_at_every_step),
    Test::limited("405_a_stale_session_is_swept", 120, a_stale_session_is_swept),
    Test::limited("406_the_service_dies", 120, the_service_dies),
    Test::limited("407_the_keeper_dies", 120, the_keeper_dies),
];

fn exit_codes() {
    let user = User::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 42", 42),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
    ] {
        let out = user.sh(script);
        assert_eq!(out.code, Some(code), "{script}: {out:?}");
    }
    let out = user.exec(&["no-such-command"]);
    assert_eq!(out.code, Some(127), "{out:?}");
    assert!(out.stderr.contains("no-such-command"), "{out:?}");
}

fn signals() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let user = User::new();
        let mut session = user.start(&["--exec", "sh", "-c", "echo up; sleep 600"]);
        session.wait_for_output("up\n");
        session.signal(signal);
        let out = session.finish();
        assert_eq!((out.code, out.stderr.as_str()), (Some(130), ""), "{signal:?}: {out:?}");
    }
}

fn kill_during_the_session() {
    let user = User::new();
    let mut session = user.start(&["--exec", "sh", "-c", "echo up; sleep 600"]);
    session.wait_for_output("up\n");
    killed(session);
}

fn killed(mut session: Session) {
    session.child.kill().unwrap();
    session.child.wait().unwrap();
    nothing_left_of(session.pid, GONE_WITHIN);
}

/// How long a start takes here, so that the moments below are spread over it on any machine.
fn time_of_a_start(user: &User) -> Duration {
    let started = Instant::now();
    let mut session = user.start(&["--exec", "sh", "-c", "echo up; cat"]);
    session.wait_for_output("up\n");
    let took = started.elapsed();
    session.finish();
    took
}

/// Moments spread over the whole start and a little beyond it.
fn moments(start: Duration) -> impl Iterator<Item = Duration> {
    const MOMENTS: u32 = 14;
    (0..MOMENTS).map(move |moment| start * moment / (MOMENTS - 2))
}

fn kill_at_every_step() {
    let user = User::new();
    for moment in moments(time_of_a_start(&user)) {
        let session = user.start(&["--exec", "sleep", "600"]);
        thread::sleep(moment);
        killed(session);
    }
}

fn interrupt_at_every_step() {
    let user = User::new();
    for moment in moments(time_of_a_start(&user)).skip(1) {
        let session = user.start(&["--exec", "sleep", "600"]);
        thread::sleep(moment);
        session.signal(Signal::TERM);
        let out = session.finish();
        // Before the handlers are in place, the signal's own death is right: nothing exists yet.
        assert!(out.code == Some(130) || out.signal == Some(15), "{moment:?}: {out:?}");
    }
}

/// What a power cut leaves: things whose labels speak of another boot.
fn a_stale_session_is_swept() {
    let user = User::new();
    let name = format!("agent-sandbox-stale-{}", std::process::id());
    let labels: Vec<String> = [
        format!("agent-sandbox.session={name}"),
        "agent-sandbox.launcher-pid=1".to_owned(),
        "agent-sandbox.launcher-start-time=1".to_owned(),
        "agent-sandbox.boot-id=00000000-0000-0000-0000-000000000000".to_owned(),
        "agent-sandbox.pid-namespace=pid:[1]".to_owned(),
    ]
    .into();
    let labelled = |words: &[&str]| {
        let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        for label in &labels {
            all.extend(["--label".to_owned(), label.clone()]);
        }
        all.push(name.clone());
        podman(&all.iter().map(String::as_str).collect::<Vec<_>>());
    };
    labelled(&["network", "create", "--internal"]);
    labelled(&["pod", "create", "--network", &name]);
    let mut session = user.start(&["--exec", "sh", "-c", "echo up; cat"]);
    session.wait_for_output("up\n");
    let deadline = Instant::now() + Duration::from_secs(30);
    while podman(&["network", "ls", "--format", "{{.Name}}"])
        .lines()
        .any(|line| line == name)
    {
        assert!(Instant::now() < deadline, "the stale session is still there");
        thread::sleep(Duration::from_millis(100));
    }
    assert!(!podman(&["pod", "ps", "--format", "{{.Name}}"]).contains(&name));
    session.finish().ok();
}

fn kill(session: &Session, what: &str) {
    let pattern = format!("{what}.*agent-sandbox-{}-", session.pid);
    let output = std::process::Command::new("pgrep")
        .args(["-f", &pattern])
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let pids = String::from_utf8(output.stdout).unwrap();
    assert!(!pids.is_empty(), "no process {pattern}");
    for pid in pids.lines() {
        // One may end with the other.
        let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL);
    }
}

/// Kills the podman service of a session.
pub(crate) fn kill_service(session: &Session) {
    kill(session, "system service");
}

fn the_service_dies() {
    let user = User::new();
    let mut session = user.start(&["--exec", "sh", "-c", "echo up; sleep 600"]);
    session.wait_for_output("up\n");
    kill_service(&session);
    let out = session.finish();
    assert_eq!(out.code, Some(125), "{out:?}");
    assert!(out.stderr.contains("podman's service"), "{out:?}");
}

/// Without its keeper a session still undoes itself.
fn the_keeper_dies() {
    let user = User::new();
    let mut session = user.start(&["--exec", "sh", "-c", "echo up; cat"]);
    session.wait_for_output("up\n");
    kill(&session, "agent-sandbox-keeper");
    drop(session.child.stdin.take());
    let pid = session.pid;
    let out = session.child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    nothing_left_of(pid, GONE_WITHIN);
}
