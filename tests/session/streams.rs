//! Pipes in and out: nothing lost, nothing mixed, everything ends.

use std::process::Stdio;

use system_tests::lab::suite::Test;

use crate::harness::{Session, User};

pub(crate) const TESTS: &[Test] = &[
    Test::limited(
        "300_input_reaches_the_command_and_ends_200_times",
        900,
        input_reaches_the_command_and_ends,
    ),
    Test::limited("301_ten_megabytes_with_an_immediate_exit", 120, ten_megabytes),
    Test::limited(
        "302_standard_output_and_error_are_apart",
        60,
        output_and_error_are_apart,
    ),
    Test::limited("303_binary_input_comes_back_as_it_was", 90, binary_comes_back),
    Test::limited(
        "304_a_command_that_does_not_read_its_input",
        60,
        input_that_nobody_reads,
    ),
    Test::limited("305_a_closed_standard_output_ends_the_session", 60, closed_output),
    Test::limited("306_a_file_as_standard_input", 60, a_file_as_input),
];

/// podman #970, #6300, #7360, #7479: output lost when attaching races with the start, input that never ends.
fn input_reaches_the_command_and_ends() {
    let user = User::new();
    for round in 0..200 {
        let out = user.run_with(&["--exec", "cat"], b"x");
        assert_eq!(
            (out.stdout.as_str(), out.code),
            ("x", Some(0)),
            "round {round}: {out:?}"
        );
    }
}

/// podman #5046, #9096: the end of the output lost.
fn ten_megabytes() {
    let user = User::new();
    for _ in 0..3 {
        let out = user.sh("head -c 10485760 /dev/zero | tr '\\0' y; echo end");
        assert_eq!((out.code, out.stdout.len()), (Some(0), 10_485_764));
        assert!(out.stdout.ends_with("yend\n"));
    }
}

fn output_and_error_are_apart() {
    let user = User::new();
    let out = user.sh("for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; exit 3");
    assert_eq!(out.stdout, "out 1\nout 2\nout 3\nout 4\nout 5\n");
    assert_eq!(out.stderr, "err 1\nerr 2\nerr 3\nerr 4\nerr 5\n");
    assert_eq!(out.code, Some(3));
}

fn binary_comes_back() {
    let user = User::new();
    let input: Vec<u8> = (0..3_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let out = user.run_with(&["--exec", "sha256sum"], &input);
    let here = {
        use std::io::Write;
        let mut child = std::process::Command::new("sha256sum")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&input).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert_eq!(out.ok(), here);
}

fn input_that_nobody_reads() {
    let user = User::new();
    let out = user.run_with(&["--exec", "sh", "-c", "echo done"], &vec![b'x'; 1 << 20]);
    assert_eq!(out.ok(), "done\n");
}

fn closed_output() {
    let user = User::new();
    let mut session = user.start(&["--exec", "sh", "-c", "while :; do echo y; sleep 0.05; done"]);
    session.wait_for_output("y\n");
    drop(session.child.stdout.take());
    let out = session.finish();
    assert_eq!((out.code, out.stderr.as_str()), (Some(141), ""), "{out:?}");
}

fn a_file_as_input() {
    let user = User::new();
    let path = user.launch_dir.join("input");
    std::fs::write(&path, "from a file\n").unwrap();
    let mut command = user.command(&["--exec", "cat"]);
    command
        .stdin(std::fs::File::open(path).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let out = Session { pid: child.id(), child }.finish();
    assert_eq!(out.ok(), "from a file\n");
}
