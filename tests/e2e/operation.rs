//! Start, reload, stop, and what the router says when it cannot do its job.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use system_tests::lab::clienthello::{ClientHello, alert};
use system_tests::lab::dns::resolve;
use system_tests::lab::http::{End, connect, read_to_end};
use system_tests::lab::suite::Test;
use system_tests::lab::world::RESOLVER;
use system_tests::lab::{Namespace, Process, RouterSetup, binary, run, wait, world};

use crate::forward::router_port;
use crate::tls::{accept, send};

pub(crate) const TESTS: &[Test] = &[
    Test::new("800_operation_faulty_allowlist", faulty_allowlist),
    Test::new("801_operation_missing_or_unreadable_allowlist", unreadable_allowlist),
    Test::new("802_operation_empty_allowlist_denies_everything", empty_allowlist),
    Test::new("803_operation_port_in_use", port_in_use),
    Test::new("804_operation_no_permission_for_port_53", no_permission),
    Test::new("805_operation_high_ports_without_root", high_ports),
    Test::new("806_operation_address_of_another_machine", foreign_address),
    Test::new("810_operation_sigterm_drains", sigterm),
    Test::new(
        "811_operation_sigterm_ends_with_open_connections",
        sigterm_with_connections,
    ),
    Test::new("812_operation_sighup_reloads", sighup),
    Test::new("813_operation_sighup_cuts_removed_names", sighup_cuts),
    Test::new("814_operation_faulty_reload_keeps_the_old_list", faulty_reload),
    Test::new("815_operation_pid_1", pid_1),
    Test::new(
        "817_operation_allowlist_that_does_not_come",
        allowlist_that_does_not_come,
    ),
    Test::new("818_operation_reload_gives_a_port_to_another_host", port_changes_hands),
    Test::new("816_operation_closed_stdout", closed_stdout),
    Test::new("820_operation_probe", probe),
    Test::new("821_operation_environment_variables", environment),
    Test::new("822_operation_help_and_usage", help),
    Test::new("823_operation_text_log", text_log),
    Test::new("824_operation_events_have_time_and_ready_comes_first", events),
    Test::new("825_operation_events_follow_their_schema", schema),
    Test::new("830_operation_static_binary", static_binary),
    Test::new("831_operation_from_scratch", from_scratch),
];

/// Runs a router that must not start: exit code 1, nothing left listening; gives what it said.
#[track_caller]
fn fails(setup: &RouterSetup) -> String {
    let done = run(&mut setup.command(), 10);
    assert_eq!(done.code(), 1, "{done}");
    assert!(!done.out().contains("\"ready\""), "{done}");
    done.err()
}

/// Whether anything listens on an address, TCP or UDP.
fn listening(namespace: &Namespace, address: Ipv4Addr) -> String {
    namespace.sh(&format!("ss -Hlntu src {address}"), 10)
}

fn faulty_allowlist() {
    let text =
        "good.example\n*.wild.example\nhttps://scheme.example\n10.0.0.1\nport.example:70000\n.suffix.example:22\n";
    let setup = world().router(text);
    let said = fails(&setup);
    for (line, offender) in [
        (2, "*.wild.example"),
        (3, "https://"),
        (4, "10.0.0.1"),
        (5, "70000"),
        (6, ".suffix.example:22"),
    ] {
        assert!(said.contains(offender), "{offender} in {said}");
        assert!(said.contains(&format!(":{line}:")), "line {line} in {said}");
    }
    assert!(!said.contains("good.example:1"), "{said}");
    assert!(said.contains("^"), "underlined: {said}");
    assert_eq!(listening(&world().router_side, setup.address()), "");
    // A fault anywhere lets nothing through, whatever else is in the file.
    for text in [
        "web.example\nweb..example\n",
        "web.example\n\u{7}\n",
        "web.example\nx:y\n",
    ] {
        fails(&world().router(text));
    }
    let latin1 = world().router("");
    fs::write(latin1.allowlist(), b"web.example\nb\xfccher.example\n").unwrap();
    assert!(fails(&latin1).contains("UTF-8"));
}

fn unreadable_allowlist() {
    let missing = world().router("web.example\n");
    fs::remove_file(missing.allowlist()).unwrap();
    let said = fails(&missing);
    assert!(
        said.contains("allowed-hosts") && said.contains("No such file"),
        "{said}"
    );
    let directory = world().router("");
    fs::remove_file(directory.allowlist()).unwrap();
    fs::create_dir(directory.allowlist()).unwrap();
    assert!(fails(&directory).contains("directory"));
    let secret = world().router("web.example\n");
    fs::set_permissions(secret.allowlist(), fs::Permissions::from_mode(0o600)).unwrap();
    let said =
        fails(
            &secret
                .through(&NOBODY)
                .args(&["--dns-port", "5353", "--tls-port", "8443", "--http-port", "8080"]),
        );
    assert!(
        said.contains("allowed-hosts") && said.contains("ermission denied"),
        "{said}"
    );
}

/// An ordinary user without any capability.
const NOBODY: [&str; 6] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--bounding-set=-all",
    "--",
];

fn empty_allowlist() {
    let router = world().router("# nothing\n\n").start();
    router.event("a warning", |event| event["event"] == "fault");
    let dig = run(
        world()
            .client
            .command("dig")
            .args([&format!("@{}", router.address), "web.example"]),
        10,
    )
    .ok();
    assert!(dig.contains("status: NXDOMAIN"), "{dig}");
    let (answer, _) = send(router.at(443), &ClientHello::chrome("web.example").bytes());
    assert_eq!(alert(&answer), Some(112));
}

fn port_in_use() {
    for port in [53, 80, 443] {
        let setup = world().router("web.example\n");
        let address = (setup.address(), port);
        let _holder = world().router_side.enter(|| TcpListener::bind(address)).unwrap();
        let said = fails(&setup);
        assert!(said.contains(&format!("{}:{port}", setup.address())), "{said}");
        assert!(said.contains("in use") && said.contains("pid"), "by whom: {said}");
        assert!(!listening(&world().router_side, setup.address()).contains(":8080"));
    }
    let setup = world().router("web.example\n");
    let address = (setup.address(), 53);
    let _holder = world().router_side.enter(|| UdpSocket::bind(address)).unwrap();
    let said = fails(&setup);
    assert!(said.contains("in use") && said.contains("udp"), "{said}");
}

fn no_permission() {
    let said = fails(&world().router("web.example\n").through(&NOBODY));
    for word in ["53", "permission denied", "NET_BIND_SERVICE"] {
        assert!(said.contains(word), "{word} in {said}");
    }
}

fn high_ports() {
    let ports = ["--dns-port", "5353", "--tls-port", "8443", "--http-port", "8080"];
    let router = world()
        .router("web.example\necho.example:7000\n")
        .through(&NOBODY)
        .args(&ports)
        .start();
    let ip = router.address.to_string();
    let dig = run(
        world()
            .client
            .command("dig")
            .args(["+short", "-p", "5353", &format!("@{ip}"), "web.example"]),
        10,
    )
    .ok();
    assert!(dig.starts_with("127."), "{dig}");
    let tls = format!("web.example:443:{ip}:8443");
    let http = format!("web.example:80:{ip}:8080");
    let urls = [
        "-sS",
        "--connect-to",
        &tls,
        "--connect-to",
        &http,
        "https://web.example/",
        "http://web.example/",
    ];
    let pages = run(world().client.command("curl").args(urls), 15).ok();
    assert_eq!(pages.matches("web says hello").count(), 2, "{pages}");
    let mut echo = connect(&world().client, router_port(&router, "echo.example", 7000));
    echo.write_all(b"x").unwrap();
    echo.read_exact(&mut [0]).unwrap();
    // The forwarder as well.
    let pod = world().pod(router.address);
    let mut forwarder = pod.command(NOBODY[0]);
    forwarder
        .args(&NOBODY[1..])
        .arg(binary::as_router())
        .args(["forward", "--router", &ip, "--allowlist"]);
    forwarder
        .arg(router.allowlist())
        .args(["--tls-port", "8443", "--http-port", "8080"]);
    forwarder.args(["--router-tls-port", "8443", "--router-http-port", "8080"]);
    let forwarder = Process::start("forwarder", &mut forwarder);
    forwarder
        .stdout
        .find(0, 10, |line| line.contains("ready").then_some(()))
        .unwrap_or_else(|| panic!("{forwarder}"));
    let tls = "web.example:443:127.0.0.1:8443";
    let page = run(
        pod.command("curl")
            .args(["-sS", "--connect-to", tls, "https://web.example/"]),
        15,
    )
    .ok();
    assert!(page.contains("web says hello"), "{page}");
}

fn foreign_address() {
    let setup = RouterSetup::new(&world().router_side, Ipv4Addr::new(192, 0, 2, 254)).allow("web.example\n");
    let said = fails(&setup);
    assert!(said.contains("192.0.2.254") && said.contains("--listen"), "{said}");
}

fn sigterm() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut router = world().router("web.example\n").start();
        let start = Instant::now();
        router.process.signal(signal);
        assert_eq!(router.process.wait(5).code(), Some(0));
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "nothing to drain, and still {:?}",
            start.elapsed()
        );
    }
    // A transfer under way is finished.
    let mut router = world().router("web.example\n").start();
    let mut stream = connect(&world().client, router.at(80));
    stream
        .write_all(b"GET /events?pause=1 HTTP/1.1\r\nHost: web.example\r\nConnection: close\r\n\r\n")
        .unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    assert_eq!(router.stop().code(), Some(0));
    let (rest, end) = read_to_end(&mut stream);
    assert!(String::from_utf8_lossy(&rest).contains("data: last"), "{rest:?}");
    assert_eq!(end, End::Clean);
}

fn sigterm_with_connections() {
    let mut router = world().router("echo.example:7000\n").start();
    let mut open = connect(&world().client, router_port(&router, "echo.example", 7000));
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    let start = Instant::now();
    assert_eq!(router.stop().code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(read_to_end(&mut open).1, End::Reset, "a cut connection is no clean end");
    router.event("close", |event| {
        event["event"] == "close" && event["reason"] == "stopped"
    });
}

fn sighup() {
    let router = world().router("web.example\n").start();
    let client = &world().client;
    let allowed = |name: &str| alert(&send_until_answer(&router, name)).is_none();
    assert!(allowed("web.example") && !allowed("api.example"));
    let event = router.reload("web.example\napi.example\n");
    assert_eq!(
        (&event["event"], &event["entries"], &event["added"]),
        (&"reloaded".into(), &2.into(), &1.into())
    );
    assert!(allowed("web.example") && allowed("api.example"));
    assert!(resolve(client, router.address, "api.example").is_loopback());
    let event = router.reload("api.example\n");
    assert_eq!(event["removed"], 1);
    assert!(!allowed("web.example") && allowed("api.example"));
    // An empty list is a list: everything is denied.
    assert_eq!(router.reload("")["event"], "reloaded");
    assert!(!allowed("api.example"));
}

/// Sends a hello for a name and reads the beginning of what comes back: an alert, or the server's own words.
fn send_until_answer(router: &system_tests::lab::Router, name: &str) -> Vec<u8> {
    let mut stream = connect(&world().client, router.at(443));
    stream.write_all(&ClientHello::chrome(name).bytes()).unwrap();
    let mut answer = vec![0; 7];
    let length = stream.read(&mut answer).unwrap();
    answer.truncate(length);
    // The server's alert about our poor key share is not the router's: it does not say unrecognized_name.
    if answer.last() == Some(&112) {
        answer
    } else {
        Vec::new()
    }
}

fn sighup_cuts() {
    let slot = world().slot();
    let router = world()
        .router(&format!("{}\necho.example:7000\nweb.example\n", slot.name))
        .start();
    let listener = slot.listen(443);
    let mut tls = connect(&world().client, router.at(443));
    tls.write_all(&ClientHello::small(&slot.name).bytes()).unwrap();
    let mut server = accept(&listener);
    server.read_exact(&mut [0; 20]).unwrap();
    let mut echo = connect(&world().client, router_port(&router, "echo.example", 7000));
    let mut kept = connect(&world().client, router.at(80));
    let get = b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n";
    kept.write_all(get).unwrap();
    assert_eq!(system_tests::lab::http::read_answer(&mut kept).status, 200);
    echo.write_all(b"x").unwrap();
    echo.read_exact(&mut [0]).unwrap();
    let event = router.reload("web.example\n");
    assert_eq!((&event["removed"], &event["cut"]), (&2.into(), &2.into()), "{event}");
    assert_eq!(read_to_end(&mut tls).1, End::Reset);
    assert_eq!(read_to_end(&mut server).1, End::Reset);
    assert_eq!(read_to_end(&mut echo).1, End::Reset);
    router.event("close", |event| {
        event["event"] == "close" && event["reason"] == "revoked"
    });
    // What is still on the list goes on.
    kept.write_all(get).unwrap();
    assert_eq!(system_tests::lab::http::read_answer(&mut kept).status, 200);
    // And is refused on a connection that is kept alive once it is removed.
    router.reload("");
    let _ = kept.write_all(get);
    let (answer, _) = read_to_end(&mut kept);
    assert!(!String::from_utf8_lossy(&answer).contains("web says hello"));
}

fn faulty_reload() {
    let router = world().router("web.example\n").start();
    for text in ["*.example\n", "web.example\nbad..name\n"] {
        let event = router.reload(text);
        assert_eq!(
            (&event["event"], &event["code"]),
            (&"fault".into(), &"reload-failed".into()),
            "{event}"
        );
        assert!(
            event["message"].as_str().unwrap().contains("old allowlist stays"),
            "{event}"
        );
    }
    fs::remove_file(router.allowlist()).unwrap();
    let mark = router.mark();
    router.process.signal(Signal::HUP);
    router.event_after(mark, "a fault", |event| event["code"] == "reload-failed");
    assert!(resolve(&world().client, router.address, "web.example").is_loopback());
    assert_eq!(router.reload("web.example\napi.example\n")["event"], "reloaded");
}

/// As PID 1 of a container it gets no default signal actions, and inherits orphans.
/// A pipe without a writer: it holds up neither the end of the process nor those who are served.
fn allowlist_that_does_not_come() {
    let setup = world().router("web.example\n");
    let fifo = |path: &Path| {
        let _ = fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    fifo(setup.allowlist());
    let mut process = Process::start("as-router", &mut setup.command());
    wait::until(10, "signals to be handled", || {
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        (caught >> (Signal::TERM.as_raw() - 1) & 1 == 1).then_some(())
    });
    process.signal(Signal::TERM);
    assert_eq!(process.wait(5).code(), Some(0));

    let mut router = world().router("web.example\n").start();
    fifo(router.allowlist());
    router.process.signal(Signal::HUP);
    let hello = ClientHello::small("forbidden.example").bytes();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(100));
        let (answer, _) = send(router.at(443), &hello);
        assert_eq!(alert(&answer), Some(112));
    }
    assert_eq!(router.stop().code(), Some(0));
}

/// With one address for all names, the new host of a port needs the very socket of the old one.
fn port_changes_hands() {
    let world = world();
    let (old, new) = (world.slot(), world.slot());
    let setup = world.router(&format!("{}:2222\n", old.name));
    let address = setup.address().to_string();
    let router = setup.args(&["--answer", &address]).start();
    for (slot, next) in [(&old, &new), (&new, &old), (&old, &new)] {
        let listener = slot.listen(2222);
        let mut client = connect(&world.client, router.at(2222));
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        let mut upstream = accept(&listener);
        upstream.read_exact(&mut byte).unwrap();
        let event = router.reload(&format!("{}:2222\n", next.name));
        assert_eq!(event["event"], "reloaded", "{event}");
        let (_, end) = read_to_end(&mut client);
        assert_eq!(end, End::Reset, "the old host's connection");
    }
}

fn pid_1() {
    let unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];
    let router = world().router("web.example\n").through(&unshare).start();
    let pid = wait::until(5, "the child of unshare", || {
        let children = format!("/proc/{0}/task/{0}/children", router.process.pid());
        fs::read_to_string(children).ok()?.trim().parse::<i32>().ok()
    });
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(
        status
            .lines()
            .any(|line| line.starts_with("NSpid:") && line.ends_with("\t1")),
        "{status}"
    );
    // An orphan: the shell ends, its child goes to PID 1 and ends.
    let orphan = format!("nsenter -t {pid} --pid -- sh -c 'sh -c \"sleep 0.1 & exit\" '");
    run(Command::new("sh").args(["-c", &orphan]), 10).ok();
    std::thread::sleep(Duration::from_millis(400));
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    assert_eq!(children.trim(), "", "zombies");
    let mut router = router;
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert_eq!(router.process.wait(5).code(), Some(0));
}

/// The reader of the log is gone; the sandbox still needs its router.
fn closed_stdout() {
    let closed = ["sh", "-c", "exec \"$@\" >&-", "sh"];
    let setup = world().router("web.example\n").through(&closed);
    let address = setup.address();
    let _router = Process::start("router", &mut setup.command());
    let server = (address, 53).into();
    let question = system_tests::lab::dns::question("web.example", hickory_proto::rr::RecordType::A);
    let ask = || system_tests::lab::dns::ask_tcp(&world().client, server, &question).ok();
    wait::until(5, "the router without a stdout", ask);
    for _ in 0..100 {
        let (answer, _) = send((address, 443).into(), &ClientHello::small("forbidden.example").bytes());
        assert_eq!(alert(&answer), Some(112));
    }
    // A pipe whose reader has gone.
    let setup = world()
        .router("web.example\n")
        .through(&["sh", "-c", "\"$@\" | head -n 1", "sh"]);
    let address = setup.address();
    let _router = Process::start("router", &mut setup.command());
    let ask = || system_tests::lab::dns::ask_tcp(&world().client, (address, 53).into(), &question).ok();
    wait::until(5, "the router with a closed pipe", ask);
    for _ in 0..100 {
        send((address, 443).into(), &ClientHello::small("forbidden.example").bytes());
    }
    assert!(ask().is_some());
}

fn probe() {
    let router = world().router("web.example\n").start();
    let probe = |arguments: &[&str]| {
        let mut command = world().router_side.command(binary::as_router());
        run(command.arg("probe").args(arguments), 10)
    };
    let address = router.address.to_string();
    probe(&["--address", &address]).ok();
    let said = probe(&["--address", "192.0.2.250", "--timeout", "1"]).fails();
    assert!(said.contains("192.0.2.250"), "{said}");
    let said = probe(&["--address", &address, "--tls-port", "4"]).fails();
    assert!(said.contains("TLS") && said.contains(":4"), "{said}");
    let mut command = world().client.command(binary::as_router());
    run(command.args(["probe", "--forwarder"]), 10).ok();
    let mut router = router;
    assert!(router.stop().success());
    probe(&["--address", &address]).fails();
}

fn environment() {
    let setup = world().router("web.example\n");
    let mut command = world().router_side.command(binary::as_router());
    command
        .env("AS_ROUTER_ALLOWLIST", setup.allowlist())
        .env("AS_ROUTER_LISTEN", setup.address().to_string())
        .env("AS_ROUTER_DNS_PORT", "5300")
        .env("AS_ROUTER_ANSWER", setup.address().to_string())
        .env("AS_ROUTER_LOG", "text");
    let router = Process::start("router", &mut command);
    let ready = router
        .stdout
        .find(0, 10, |line| line.contains("ready").then(|| line.to_owned()));
    let ready = ready.unwrap_or_else(|| panic!("{router}"));
    assert!(ready.contains(&format!("dns://{}:5300", setup.address())), "{ready}");
    let dig = ["+short", "-p", "5300", &format!("@{}", setup.address()), "web.example"];
    assert_eq!(
        run(world().client.command("dig").args(dig), 10).ok().trim(),
        setup.address().to_string()
    );
}

fn help() {
    let as_router = |arguments: &[&str]| run(Command::new(binary::as_router()).args(arguments), 10);
    let help = as_router(&["--help"]).ok();
    for word in [
        "--allowlist",
        "AS_ROUTER_ALLOWLIST",
        "forward",
        "probe",
        "--check",
        "Examples",
        ".example.com",
    ] {
        assert!(help.contains(word), "{word} in {help}");
    }
    assert!(as_router(&["forward", "--help"]).ok().contains("--router"));
    assert!(as_router(&["--version"]).ok().starts_with("as-router "));
    for usage in [
        &["--nonsense"][..],
        &["forward"],
        &["--listen", "x"],
        &["--dns-port", "70000"],
        &["web.example"],
    ] {
        let done = as_router(usage);
        assert_eq!(done.code(), 2, "{done}");
        assert!(done.err().contains("--help") || done.err().contains("Usage"), "{done}");
    }
}

fn text_log() {
    let setup = world().router("web.example\n").args(&["--log", "text"]);
    let router = Process::start("router", &mut setup.command());
    let ready = router
        .stdout
        .find(0, 10, |line| line.contains("ready").then(|| line.to_owned()));
    assert!(!ready.unwrap_or_else(|| panic!("{router}")).contains('{'));
}

fn events() {
    let router = world().router("web.example\n").start();
    // What strangers send must not reach a terminal raw (`parse` in the lab refuses control characters).
    for name in ["\u{1b}[31mred", "a\nb", "\u{202e}evil", "forbidden.example"] {
        send(router.at(443), &ClientHello::small(name).bytes());
        let request = format!("GET /\u{1b}[2J HTTP/1.1\r\nHost: {name}\r\n\r\n");
        send(router.at(80), request.as_bytes());
    }
    router.refused("name-not-allowed", "forbidden.example");
    let mut router = router;
    router.stop();
    let events = router.events();
    assert_eq!(events[0]["event"], "ready");
    for event in &events {
        let time = event["time"].as_str().unwrap_or_else(|| panic!("{event}"));
        // RFC 3339 in UTC.
        assert!(
            time.len() >= 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z'),
            "{event}"
        );
    }
    let known = ["ready", "reloaded", "allow", "close", "refuse", "fault", "stopped"];
    assert!(
        events
            .iter()
            .all(|event| known.contains(&event["event"].as_str().unwrap()))
    );
}

/// Fields by kind of event, as `docs/events.md` has them: those that are always there, those that may be.
const SCHEMA: [(&str, &[&str], &[&str]); 7] = [
    ("ready", &["mode", "entries", "listeners", "version"], &[]),
    ("reloaded", &["entries", "added", "removed", "cut"], &[]),
    ("allow", &["protocol", "name", "port", "upstream", "entry"], &["ech"]),
    (
        "close",
        &[
            "protocol",
            "name",
            "port",
            "upstream",
            "entry",
            "bytes_out",
            "bytes_in",
            "duration_ms",
            "reason",
        ],
        &[],
    ),
    ("refuse", &["code", "protocol", "port"], &["name", "repeated"]),
    ("fault", &["code", "message"], &[]),
    ("stopped", &["mode"], &[]),
];

fn schema() {
    let documented = fs::read_to_string(binary::workspace().join("docs/events.md")).unwrap();
    let mut router = world().router("web.example\nweb.example\n").start();
    let get = b"GET / HTTP/1.1\r\nHost: web.example\r\nConnection: close\r\n\r\n";
    send(router.at(80), get);
    for _ in 0..3 {
        send(router.at(443), &ClientHello::chrome("forbidden.example").bytes());
        send(router.at(443), b"no TLS at all");
    }
    assert_eq!(router.reload("*.example\n")["event"], "fault");
    assert_eq!(router.reload("web.example\n")["event"], "reloaded");
    assert_eq!(router.stop().code(), Some(0));
    let mut events = router.events();
    for (kind, ..) in SCHEMA {
        assert!(events.iter().any(|event| event["event"] == kind), "no {kind} event");
    }
    // And those of all tests so far.
    events.extend(world().router.events());
    for event in &events {
        let (kind, required, optional) = SCHEMA.into_iter().find(|(kind, ..)| event["event"] == *kind).unwrap();
        let fields = event.as_object().unwrap();
        for field in ["time", "event"].iter().chain(required) {
            assert!(fields.contains_key(*field), "no {field}: {event}");
        }
        let known =
            |field: &str| ["time", "event"].contains(&field) || required.contains(&field) || optional.contains(&field);
        assert!(fields.keys().all(|field| known(field)), "an unknown field: {event}");
        let code = event["code"]
            .as_str()
            .filter(|_| kind == "refuse")
            .or_else(|| event["reason"].as_str());
        assert!(
            code.is_none_or(|code| documented.contains(&format!("`{code}`"))),
            "not documented: {event}"
        );
    }
}

/// The promises about the released file; a debug build is only looked at for what it shares.
fn static_binary() {
    let file = run(Command::new("file").arg("-L").arg(binary::as_router()), 10).ok();
    if !binary::is_release() {
        // Tested in the release build that `make e2e` makes.
        assert!(file.contains("ELF"), "{file}");
        return;
    }
    assert!(
        file.contains("statically linked") || file.contains("static-pie linked"),
        "{file}"
    );
    assert!(file.contains("stripped") && !file.contains("not stripped"), "{file}");
    let size = fs::metadata(binary::as_router()).unwrap().len();
    assert!(size < 6_000_000, "{size} bytes");
    let bytes = fs::read(binary::as_router()).unwrap();
    // glibc's resolver and name service would bring these along; hickory reads the files itself.
    for word in ["/etc/nsswitch.conf", "/etc/gai.conf", "libnss_"] {
        let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!found, "{word} in the binary: glibc's name service is in it");
    }
}

/// As in an image FROM scratch: no file but the binary, the allowlist, and what the container engine mounts.
fn from_scratch() {
    if !binary::is_release() {
        return;
    }
    let setup = world().router("web.example\n");
    let root = Path::new("/run/lab/scratch");
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::copy(binary::as_router(), root.join("as-router")).unwrap();
    fs::copy(setup.allowlist(), root.join("etc/allowed-hosts")).unwrap();
    fs::write(root.join("etc/resolv.conf"), format!("nameserver {RESOLVER}\n")).unwrap();
    let mut command = world().router_side.command("chroot");
    let listen = setup.address().to_string();
    command.arg(root).args([
        "/as-router",
        "--allowlist",
        "/etc/allowed-hosts",
        "--listen",
        &listen,
        "--answer",
        &listen,
    ]);
    let start = Instant::now();
    let router = Process::start("from scratch", &mut command);
    let ready = router
        .stdout
        .find(0, 10, |line| line.contains("\"ready\"").then_some(()));
    ready.unwrap_or_else(|| panic!("{router}"));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let pod = world().pod(setup.address());
    let pages = run(
        pod.command("curl")
            .args(["-sS", "https://web.example/", "http://web.example/"]),
        15,
    )
    .ok();
    assert_eq!(pages.matches("web says hello").count(), 2, "{pages}");
}
