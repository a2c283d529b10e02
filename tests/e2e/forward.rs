//! `host:port` entries and the forwarder: ssh, git, PostgreSQL, and ports that lead nowhere.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use system_tests::lab::clienthello::ClientHello;
use system_tests::lab::dns::resolve;
use system_tests::lab::http::{End, LIMIT, connect, read_to_end};
use system_tests::lab::router::Forwarder;
use system_tests::lab::servers::client_key;
use system_tests::lab::suite::Test;
use system_tests::lab::world::{CLIENT, ROUTER, WEB};
use system_tests::lab::{Namespace, Router, run, wait, world};

use crate::tls::accept;

pub(crate) const TESTS: &[Test] = &[
    Test::new("400_forward_ssh", ssh),
    Test::new("401_forward_git_over_ssh", git_over_ssh),
    Test::new("402_forward_git_over_https", git_over_https),
    Test::new("403_forward_postgres_verifies_the_name", postgres),
    Test::new("404_forward_half_close", half_close),
    Test::new("405_forward_destination_is_the_listeners", destination_is_the_listeners),
    Test::new("406_forward_other_ports_are_closed", other_ports),
    Test::new("407_forward_no_way_around_the_router", no_way_around),
    Test::new("408_forward_server_that_speaks_first_on_443", raw_443),
    Test::new("409_forward_localhost_stays_free", localhost_stays_free),
    Test::new("410_forward_serves_its_pod_only", pod_only),
    Test::new("411_forward_router_gone_and_back", router_gone),
    Test::new("412_forward_refused_upstream_is_a_reset", refused_upstream),
    Test::new("413_forward_reload_adds_and_removes_ports", reload),
    Test::new("414_forward_ports_do_not_move", ports_do_not_move),
    Test::new("415_forward_same_port_of_two_hosts", same_port),
];

/// The address of a name in the client's namespace, with a port.
pub(crate) fn local(name: &str, port: u16) -> SocketAddr {
    SocketAddr::from((resolve(&world().client, ROUTER, name), port))
}

fn ssh_command(namespace: &Namespace) -> Command {
    let mut command = namespace.command("ssh");
    command.args(client_key()).arg("git.example");
    command
}

fn ssh() {
    let hello = run(ssh_command(&world().client).arg("echo hello from $(hostname)"), 15).ok();
    assert!(hello.starts_with("hello from "), "{hello}");
    // 8 MB through ssh and back.
    let line = "head -c 8000000 /run/lab/www/file/33554432 | ssh \"$@\" git.example cat | \
                cmp - /run/lab/www/file/33554432 -n 8000000";
    run(
        world()
            .client
            .command("sh")
            .args(["-ec", line, "sh"])
            .args(client_key()),
        25,
    )
    .ok();
    let event = world().router.event("close", |event| {
        event["event"] == "close" && event["name"] == "git.example" && event["protocol"] == "tcp"
    });
    assert_eq!(event["upstream"], "203.0.113.22:22");
}

fn git(script: &str) -> String {
    let ssh = format!("ssh {}", client_key().join(" "));
    let mut command = world().client.command("sh");
    command
        .args(["-ec", script])
        .env("GIT_SSH_COMMAND", ssh)
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for (key, value) in [("NAME", "client"), ("EMAIL", "client@example")] {
        command
            .env(format!("GIT_AUTHOR_{key}"), value)
            .env(format!("GIT_COMMITTER_{key}"), value);
    }
    run(&mut command, 25).ok()
}

/// Clones, pushes a commit on a branch of its own, and fetches it again.
fn clone_and_push(url: &str, directory: &str) {
    git(&format!(
        "git clone --quiet {url} {directory}
         cd {directory}
         git fsck --no-progress
         test -s file1 -a -s file2 -a -s file3
         head -c 500000 /dev/urandom > mine
         git add . && git commit --quiet -m mine
         git push --quiet origin HEAD:refs/heads/{directory}
         test $(git ls-remote {url} refs/heads/{directory} | cut -f1) = $(git rev-parse HEAD)"
    ));
}

fn git_over_ssh() {
    clone_and_push("ssh://git.example/run/lab/git/demo.git", "over-ssh");
}

fn git_over_https() {
    clone_and_push("https://git.example/git/demo.git", "over-https");
    let refused = "git ls-remote https://forbidden.example/git/demo.git 2>&1 || true";
    assert!(git(refused).contains("Could not resolve host"));
}

fn postgres() {
    let psql = |host: &str, sql: &str| {
        let target = format!("host={host} user=postgres sslmode=verify-full sslrootcert=/run/lab/ca/ca.pem");
        run(world().client.command("psql").args([&target, "-X", "-tAc", sql]), 20)
    };
    assert_eq!(
        psql("db.example", "select ssl from pg_stat_ssl where pid = pg_backend_pid()")
            .ok()
            .trim(),
        "t"
    );
    let sum = psql(
        "db.example",
        "select sum(length(repeat('x', 1000) || n)) from generate_series(1, 20000) n",
    )
    .ok();
    assert_eq!(sum.trim(), "20088894");
    let rows = psql("db.example", "select repeat('x', 1000) from generate_series(1, 5000)").ok();
    assert_eq!(rows.len(), 5000 * 1001);
    let refused = psql("forbidden.example", "select 1").fails();
    assert!(refused.contains("could not translate host name"), "{refused}");
}

fn half_close() {
    for to in [
        local("echo.example", 7000),
        router_port(&world().router, "echo.example", 7000),
    ] {
        let mut stream = connect(&world().client, to);
        stream.write_all(b"all that I have to say").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(
            read_to_end(&mut stream),
            (b"all that I have to say".to_vec(), End::Clean)
        );
    }
}

/// The port of the router that stands for `name:port`, as `--check` tells it.
pub(crate) fn router_port(router: &Router, name: &str, port: u16) -> SocketAddr {
    let check = ["--format", "json", "--check"];
    let mut command = Command::new(system_tests::lab::binary::as_router());
    let json = run(command.args(check).arg(router.allowlist()), 10).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let entries = json["entries"]
        .as_array()
        .unwrap_or_else(|| panic!("entries in {json}"));
    let entry = entries.iter().find(|entry| entry["entry"] == format!("{name}:{port}"));
    let entry = entry.unwrap_or_else(|| panic!("{name}:{port} in {json}"));
    router.at(u16::try_from(entry["router_port"].as_u64().unwrap()).unwrap())
}

fn destination_is_the_listeners() {
    let hello = ClientHello::chrome("web.example").bytes();
    for payload in [
        &hello[..],
        b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n",
        b"CONNECT web.example:443 HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = connect(&world().client, local("echo.example", 7000));
        stream.write_all(payload).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&mut stream), (payload.to_vec(), End::Clean));
    }
}

#[track_caller]
fn assert_refused(to: SocketAddr) {
    let error = world()
        .client
        .enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)))
        .map(drop)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}: {error}");
}

fn other_ports() {
    for (name, port) in [
        ("web.example", 22),
        ("web.example", 5432),
        ("git.example", 5432),
        ("db.example", 22),
    ] {
        assert_refused(local(name, port));
    }
    for port in [22, 5432, 7000, 8080, 9999, 10_000] {
        if router_ports(&world().router).contains(&port) {
            continue;
        }
        assert_refused(world().router.at(port));
    }
}

fn router_ports(router: &Router) -> Vec<u16> {
    let ready = router.event("ready", |event| event["event"] == "ready");
    let listeners = ready["listeners"].as_array().unwrap().iter();
    listeners
        .filter_map(|listener| listener.as_str()?.rsplit_once(':')?.1.parse().ok())
        .collect()
}

fn no_way_around() {
    let client = &world().client;
    for address in [WEB, Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(198, 51, 100, 2)] {
        let to = SocketAddr::from((address, 443));
        let error = client
            .enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)))
            .map(drop)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable, "{address}: {error}");
    }
    let refused = run(client.command("curl").args(["-sS", "https://203.0.113.10/"]), 10).fails();
    assert!(
        refused.contains("Couldn't connect") || refused.contains("Failed to connect"),
        "{refused}"
    );
    // Even a client that gives itself a route gets no packet forwarded.
    let pod = world().pod(ROUTER);
    pod.ip(&format!("route add default via {ROUTER}"));
    let to = SocketAddr::from((WEB, 443));
    let error = pod
        .enter(|| TcpStream::connect_timeout(&to, Duration::from_secs(2)))
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::HostUnreachable),
        "{error}"
    );
}

fn raw_443() {
    let slot = world().slot();
    let listener = slot.listen(443);
    let router = world().router(&format!("{}:443\nweb.example\n", slot.name)).start();
    let pod = world().pod(router.address);
    let _forwarder = Forwarder::start(&pod, &router, &[]);
    let raw = SocketAddr::from((resolve(&pod, router.address, &slot.name), 443));
    let mut client = connect(&pod, raw);
    let mut server = accept(&listener);
    server.write_all(b"SSH-2.0-lab\r\n").unwrap();
    let mut banner = [0; 13];
    client.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"SSH-2.0-lab\r\n");
    client.write_all(b"answer").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut server), (b"answer".to_vec(), End::Clean));
    // Port 443 of other names still goes by the name in the hello.
    let page = run(pod.command("curl").args(["-sS", "https://web.example/"]), 10).ok();
    assert!(page.contains("web says hello"), "{page}");
}

fn localhost_stays_free() {
    let own = world()
        .client
        .enter(|| TcpListener::bind("127.0.0.1:5432"))
        .expect("the user's own postgres");
    assert!(
        run(
            world()
                .client
                .command("pg_isready")
                .args(["-t", "15", "-h", "db.example"]),
            20
        )
        .ok()
        .contains("accepting")
    );
    let mut stream = connect(&world().client, "127.0.0.1:5432".parse().unwrap());
    let mut accepted = accept(&own);
    accepted.write_all(b"mine").unwrap();
    drop(accepted);
    assert_eq!(read_to_end(&mut stream).0, b"mine");
}

/// A connection is accepted and reset without a byte; the reset may come before the client knows of the acceptance.
#[track_caller]
fn assert_reset(from: &Namespace, to: SocketAddr) {
    match from.enter(|| TcpStream::connect_timeout(&to, LIMIT)) {
        Ok(mut stream) => {
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            // A failed write has taken the error that the read would have got.
            if stream.write_all(&ClientHello::chrome("web.example").bytes()).is_ok() {
                assert_eq!(read_to_end(&mut stream), (Vec::new(), End::Reset), "{to}");
            }
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{to}: {error}"),
    }
}

/// The forwarder's ports 80 and 443 are on 0.0.0.0; only the pod itself may use them.
fn pod_only() {
    let stranger = world().pod(ROUTER);
    for port in [80, 443] {
        assert_reset(&stranger, SocketAddr::from((CLIENT, port)));
    }
    world()
        .forwarder
        .event("the refusal", |event| event["code"] == "client-not-local");
}

fn router_gone() {
    let world = world();
    let pod = world.pod(ROUTER);
    let mut router = world.router("web.example\n").start();
    let forwarder = Forwarder::start(&pod, &router, &[]);
    let address = SocketAddr::from((resolve(&pod, router.address, "web.example"), 443));
    assert!(router.stop().success());
    assert_reset(&pod, address);
    forwarder.event("the refusal", |event| event["code"] == "router-unreachable");
    let router = router.restart();
    pod.write_resolv_conf(&format!("nameserver {}\n", router.address));
    let page = run(pod.command("curl").args(["-sS", "https://web.example/"]), 10).ok();
    assert!(page.contains("web says hello"), "{page}");
}

fn refused_upstream() {
    assert_reset(&world().client, local("closed.example", 7001));
    let event = world().router.event("the refusal", |event| {
        event["code"] == "upstream-unreachable" && event["name"] == "closed.example" && event["port"] == 7001
    });
    assert_eq!(event["protocol"], "tcp");
}

fn reload() {
    let world = world();
    let router = world.router("echo.example:7000\n").start();
    let pod = world.pod(router.address);
    let forwarder = Forwarder::start(&pod, &router, &[]);
    let echo = SocketAddr::from((resolve(&pod, router.address, "echo.example"), 7000));
    let mut open = connect(&pod, echo);
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    assert_eq!(router.reload("db.example:5432\n")["event"], "reloaded");
    assert_eq!(forwarder.reload()["event"], "reloaded");
    assert!(
        run(pod.command("pg_isready").args(["-t", "15", "-h", "db.example"]), 20)
            .ok()
            .contains("accepting")
    );
    // The entry is gone, its connection is cut, its port is closed.
    assert_eq!(read_to_end(&mut open).1, End::Reset);
    wait::until(5, "the port to close", || {
        pod.enter(|| TcpStream::connect_timeout(&echo, Duration::from_secs(1)))
            .err()
    });
}

/// Adding or removing another entry moves no port: a connection must never land on another server.
fn ports_do_not_move() {
    let world = world();
    let router = world.router("echo.example:7000\n").start();
    let before = router_port(&router, "echo.example", 7000);
    let many: String = (0..50).map(|n| format!("n{n}.slot.example:{}\n", 7000 + n)).collect();
    assert_eq!(
        router.reload(&format!("{many}echo.example:7000\n"))["event"],
        "reloaded"
    );
    assert_eq!(router_port(&router, "echo.example", 7000), before);
    let mut stream = connect(&world.client, before);
    stream.write_all(b"still here").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut stream).0, b"still here");
    assert_eq!(router.reload(&many)["event"], "reloaded");
    wait::until(5, "the port to close", || {
        world
            .client
            .enter(|| TcpStream::connect_timeout(&before, Duration::from_secs(1)))
            .err()
    });
}

fn same_port() {
    let world = world();
    let (one, two) = (world.slot(), world.slot());
    let router = world.router(&format!("{}:4000\n{}:4000\n", one.name, two.name)).start();
    let pod = world.pod(router.address);
    let _forwarder = Forwarder::start(&pod, &router, &[]);
    for slot in [one, two] {
        let listener = slot.listen(4000);
        let mut client = connect(
            &pod,
            SocketAddr::from((resolve(&pod, router.address, &slot.name), 4000)),
        );
        accept(&listener).write_all(slot.name.as_bytes()).unwrap();
        assert_eq!(read_to_end(&mut client).0, slot.name.as_bytes());
    }
}
