//! What the README says about files, users and the home, claim by claim.

use std::os::unix::fs::{MetadataExt, symlink};

use system_tests::lab::suite::Test;

use crate::harness::User;

pub(crate) const TESTS: &[Test] = &[
    Test::limited(
        "100_files_made_inside_belong_to_the_user",
        60,
        files_made_inside_belong_to_the_user,
    ),
    Test::limited(
        "101_the_launch_directory_is_all_that_is_seen",
        60,
        the_launch_directory_is_all_that_is_seen,
    ),
    Test::limited(
        "102_the_resolved_target_is_mounted_at_its_own_path",
        60,
        the_resolved_target_is_mounted,
    ),
    Test::limited(
        "103_the_home_persists_and_is_shared",
        90,
        the_home_persists_and_is_shared,
    ),
    Test::limited("104_the_user_has_no_privilege", 60, the_user_has_no_privilege),
    Test::limited(
        "105_processes_of_the_forwarder_are_not_there",
        60,
        processes_of_the_forwarder_are_not_there,
    ),
    Test::limited("106_several_sessions_at_once", 120, several_sessions_at_once),
    Test::limited("107_the_allowlist_is_seeded_once", 60, the_allowlist_is_seeded_once),
];

fn files_made_inside_belong_to_the_user() {
    let user = User::new();
    std::fs::write(user.launch_dir.join("given"), "from outside").unwrap();
    let out = user.sh("cat given; mkdir d; echo made >d/f; chmod 640 d/f; stat -c %u:%a given d/f; id -u; pwd");
    let mode = std::fs::metadata(user.launch_dir.join("given")).unwrap().mode() & 0o777;
    let want = format!(
        "from outside1000:{mode:o}\n1000:640\n1000\n{}\n",
        user.launch_dir.display()
    );
    assert_eq!(out.ok(), want);
    let made = std::fs::metadata(user.launch_dir.join("d/f")).unwrap();
    let me = rustix::process::getuid().as_raw();
    assert_eq!((made.uid(), made.gid()), (me, rustix::process::getgid().as_raw()));
}

fn the_launch_directory_is_all_that_is_seen() {
    let user = User::new();
    std::fs::write(user.home.join("secret"), "x").unwrap();
    std::fs::write(user.launch_dir.parent().unwrap().join("sibling"), "x").unwrap();
    // Mounts of the host show in mountinfo whatever they are called.
    let out = user.sh("ls -A ..; ls -A ../..; test -e /run/user && ls /run/user; \
         env | grep -i -E 'dbus|ssh_auth|xdg_runtime|proxy|agent_sandbox'; \
         awk '{print $5}' /proc/self/mountinfo | grep -v -E '^/(proc|sys|dev|etc|run)(/|$)'");
    let mut lines: Vec<_> = out.stdout.lines().collect();
    lines.sort_unstable();
    let dir = user.launch_dir.display().to_string();
    let mut want = vec!["/", "/home/claude", dir.as_str(), "repo", "src"];
    want.sort_unstable();
    assert_eq!(lines, want, "{out:?}");
}

fn the_resolved_target_is_mounted() {
    let mut user = User::new();
    let link = user.home.join("link");
    symlink(&user.launch_dir, &link).unwrap();
    let target = std::mem::replace(&mut user.launch_dir, link);
    assert_eq!(user.sh("pwd -P; touch here").ok(), format!("{}\n", target.display()));
    assert!(target.join("here").exists());
}

fn the_home_persists_and_is_shared() {
    let volume = format!("test-shared-{}", std::process::id());
    let one = User::new().set("AGENT_SANDBOX_HOME_VOLUME", &volume);
    let two = User::new().set("AGENT_SANDBOX_HOME_VOLUME", &volume);
    assert_eq!(one.sh("cd && pwd && echo kept >note").ok(), "/home/claude\n");
    assert_eq!(two.sh("cat ~/note").ok(), "kept\n");
    crate::harness::podman(&["volume", "rm", &volume]);
}

fn the_user_has_no_privilege() {
    let user = User::new();
    let out = user.sh("grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status; find / -xdev -perm /6000 -type f 2>/dev/null");
    assert_eq!(
        out.stdout, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n",
        "{out:?}"
    );
    let out = user.sh(
        "ip link set lo down; ip addr add 127.9.9.9/8 dev lo; ip route add default via 10.0.0.1; \
         echo x >>/etc/resolv.conf; echo x >>/etc/hosts; unshare -n true && echo new; true",
    );
    assert!(!out.stdout.contains("new") || out.code == Some(0), "{out:?}");
    for refused in ["Operation not permitted", "Permission denied"] {
        assert!(out.stderr.contains(refused), "{out:?}");
    }
    let changed = user.sh("ip -4 -brief address show lo; ip route; cat /etc/resolv.conf | grep -c nameserver");
    assert!(
        !changed.stdout.contains("127.9.9.9") && !changed.stdout.contains("default"),
        "{changed:?}"
    );
}

fn processes_of_the_forwarder_are_not_there() {
    let user = User::new();
    let out = user.sh("cat /proc/[0-9]*/comm | sort -u; ls /dev/shm; ipcs -m 2>/dev/null | grep -c 0x; true");
    assert!(
        !out.stdout.contains("as-router") && out.stdout.contains("podman-init"),
        "{out:?}"
    );
}

fn several_sessions_at_once() {
    let users: Vec<User> = (0..4).map(|_| User::new()).collect();
    let sessions: Vec<_> = users
        .iter()
        .map(|user| user.start(&["--exec", "sh", "-c", "hostname; cat"]))
        .collect();
    for session in sessions {
        let finished = session.finish();
        assert_eq!(finished.ok(), "agent-sandbox\n");
    }
}

fn the_allowlist_is_seeded_once() {
    let user = User::new();
    let file = user.home.join(".config/agent-sandbox/allowed-hosts");
    std::fs::remove_file(&file).unwrap();
    let first = user.exec(&["true"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(
        first.stderr.contains(&format!("created {}", file.display())),
        "{first:?}"
    );
    assert!(std::fs::read_to_string(&file).unwrap().contains("api.anthropic.com"));
    user.exec(&["true"]).ok();
}
