//! Sessions that cannot start: one clear message, the promised exit code, nothing left.

use system_tests::lab::suite::Test;

use crate::harness::User;

pub(crate) const TESTS: &[Test] = &[
    Test::limited("500_a_refused_directory", 60, a_refused_directory),
    Test::limited("501_a_broken_allowlist", 60, a_broken_allowlist),
    Test::limited("502_an_image_that_is_not_there", 60, an_image_that_is_not_there),
    Test::limited("503_an_image_that_is_no_router", 60, an_image_that_is_no_router),
    Test::limited("504_no_podman", 60, no_podman),
    Test::limited("505_no_newuidmap", 60, no_newuidmap),
    Test::limited("506_a_read_only_config_directory", 60, a_read_only_config_directory),
    Test::limited("507_podman_too_old", 60, podman_too_old),
    Test::limited("508_no_runtime_directory", 60, no_runtime_directory),
];

/// One message: every line begins with the program's name or is indented under it.
#[track_caller]
fn message(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(
        text.lines().filter(|line| line.starts_with("agent-sandbox: ")).count(),
        1,
        "{text}"
    );
}

fn a_refused_directory() {
    let mut user = User::new();
    let home = user.home.display().to_string();
    user.launch_dir = user.home.clone();
    let out = user.exec(&["true"]);
    message(
        out.refused(1),
        &[
            &format!("refusing to launch from {home}"),
            "home directory",
            "change to",
        ],
    );
    user.launch_dir = user.home.join(".config/agent-sandbox");
    message(user.exec(&["true"]).refused(1), &["refusing to launch from"]);
    user.launch_dir = "/tmp".into();
    message(user.exec(&["true"]).refused(1), &["refusing to launch from /tmp"]);
    user.launch_dir = user.home.join("src/a:b");
    std::fs::create_dir(&user.launch_dir).unwrap();
    message(user.exec(&["true"]).refused(1), &["':'"]);
}

fn a_broken_allowlist() {
    let user = User::new();
    let file = user.home.join(".config/agent-sandbox/allowed-hosts");
    std::fs::write(&file, "api.anthropic.com\nhttps://x.example/\n").unwrap();
    let out = user.exec(&["true"]);
    let text = out.refused(1);
    assert!(
        text.contains("https://x.example/") && text.contains("has faults"),
        "{text}"
    );
}

fn an_image_that_is_not_there() {
    let user = User::new().set("AGENT_SANDBOX_IMAGE", "localhost/no-such-image:1");
    message(
        user.exec(&["true"]).refused(125),
        &["localhost/no-such-image:1", "make images"],
    );
    let user = User::new().set("AGENT_SANDBOX_ROUTER_IMAGE", "localhost/no-such-router:1");
    message(
        user.exec(&["true"]).refused(125),
        &["localhost/no-such-router:1", "router"],
    );
}

fn an_image_that_is_no_router() {
    let user = User::new().set("AGENT_SANDBOX_ROUTER_IMAGE", "localhost/agent-sandbox:dev");
    let out = user.exec(&["true"]);
    message(out.refused(125), &["router", "failed"]);
}

fn no_podman() {
    let user = User::new().set("PATH", "/nonexistent");
    message(
        user.exec(&["true"]).refused(125),
        &["cannot run podman", "install podman"],
    );
}

/// A directory of programs that hides some of the machine's.
fn programs(user: &User, stand_ins: &[(&str, &str)]) -> String {
    use std::os::unix::fs::PermissionsExt;
    let dir = user.home.join("programs");
    std::fs::create_dir(&dir).unwrap();
    for (name, script) in stand_ins {
        let file = dir.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", dir.display(), std::env::var("PATH").unwrap())
}

/// What podman says when it cannot make its user namespace is shown as it is.
fn no_newuidmap() {
    let user = User::new();
    let path = programs(
        &user,
        &[(
            "podman",
            "echo 'Error: command required for rootless mode with multiple IDs: exec: \"newuidmap\": executable file not found in $PATH' >&2; exit 125",
        )],
    );
    let user = user.set("PATH", &path);
    message(
        user.exec(&["true"]).refused(125),
        &["podman's service ended", "newuidmap"],
    );
}

fn podman_too_old() {
    let user = User::new();
    let serve = "exec python3 -c 'import socket,sys\n\
        s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1][7:]); s.listen()\n\
        while 1:\n  c=s.accept()[0]; c.recv(999)\n  \
        c.sendall(b\"HTTP/1.1 200 OK\\r\\nLibpod-API-Version: 3.4.4\\r\\nContent-Length: 0\\r\\n\\r\\n\"); c.close()' \"$4\"";
    let path = programs(&user, &[("podman", serve)]);
    let user = user.set("PATH", &path);
    message(user.exec(&["true"]).refused(125), &["3.4.4", "4.3 or newer"]);
}

fn a_read_only_config_directory() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    let dir = user.home.join(".config/agent-sandbox");
    std::fs::remove_file(dir.join("allowed-hosts")).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o500)).unwrap();
    let out = user.exec(&["true"]);
    message(
        out.refused(1),
        &[
            "cannot create the allowlist",
            "Permission denied",
            "AGENT_SANDBOX_ALLOWLIST",
        ],
    );
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
}

fn no_runtime_directory() {
    let user = User::new().set("XDG_RUNTIME_DIR", "/nonexistent");
    message(user.exec(&["true"]).refused(1), &["/nonexistent", "XDG_RUNTIME_DIR"]);
}
