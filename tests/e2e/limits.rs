//! Too much, too slow, and too little said.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;
use socket2::SockRef;
use system_tests::lab::clienthello::ClientHello;
use system_tests::lab::dns::{ask_tcp, ask_udp, decode, framed, question, resolve};
use system_tests::lab::http::{End, LIMIT, connect, read_to_end};
use system_tests::lab::suite::Test;
use system_tests::lab::{Router, run, wait, world};

use crate::forward::router_port;

pub(crate) const TESTS: &[Test] = &[
    Test::limited(
        "700_limits_bun_32705_out_of_descriptors_and_back",
        60,
        out_of_descriptors,
    ),
    Test::new("701_limits_hickory_3725_aborted_connections", aborted_connections),
    Test::limited("702_limits_slowloris", 60, slowloris),
    Test::new("703_limits_tokio_965_three_bytes_and_silence", three_bytes),
    Test::limited("704_limits_dns_connections", 60, dns_connections),
    Test::limited("705_limits_dns_slow_message", 60, dns_slow_message),
    Test::new("706_limits_repeated_refusals_are_folded", folded),
    Test::new("707_limits_descriptor_limit_is_raised", raised),
    Test::new("708_limits_memory_of_idle_connections", memory),
    Test::new("709_limits_questions_of_many_names", many_names),
    Test::limited("710_limits_silent_connections_end", 60, silent),
];

/// Whether DNS answers on both transports.
fn dns_answers(router: &Router) -> bool {
    let question = question("echo.example", RecordType::A);
    let client = &world().client;
    ask_udp(client, router.at(53), &question).is_some() && ask_tcp(client, router.at(53), &question).is_ok()
}

fn out_of_descriptors() {
    let router = world()
        .router("echo.example:7000\n")
        .through(&["prlimit", "--nofile=64:64"])
        .start();
    let echo = router_port(&router, "echo.example", 7000);
    let streams: Vec<TcpStream> = (0..200).map(|_| connect(&world().client, echo)).collect();
    for mut stream in &streams {
        let _ = stream.write_all(b"x");
    }
    // Some are served, the rest wait in the backlog; none of it may disturb DNS, or cost CPU.
    wait::until(10, "the router to be full", || {
        (router.process.descriptors() > 25).then_some(())
    });
    thread::sleep(Duration::from_millis(500));
    let before = router.process.cpu_ticks();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        assert!(dns_answers(&router), "DNS while descriptors are short");
        thread::sleep(Duration::from_millis(100));
    }
    let ticks = router.process.cpu_ticks() - before;
    assert!(ticks < 40, "{ticks} ticks of CPU in 2 s: it spins");
    assert!(router.process.descriptors() <= 64);
    let faults = router.events().iter().filter(|event| event["event"] == "fault").count();
    assert!(faults <= 3, "{faults} faults: the log is flooded");
    drop(streams);
    let served = wait::until(20, "service again", || {
        let mut stream = connect(&world().client, echo);
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        stream.write_all(b"again").ok()?;
        let mut got = [0; 5];
        stream.read_exact(&mut got).ok()?;
        Some(got)
    });
    assert_eq!(&served, b"again");
}

/// An aborted connection ended hickory-server's listener for good; aardvark-dns left its loop at any accept error.
fn aborted_connections() {
    let router = world().router("echo.example\n").start();
    for port in [53, 80, 443] {
        for _ in 0..1000 {
            let stream = connect(&world().client, router.at(port));
            SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        }
    }
    assert!(dns_answers(&router));
    for port in [80, 443] {
        drop(connect(&world().client, router.at(port)));
    }
    wait::until(10, "descriptors to be given back", || {
        (router.process.descriptors() < 40).then_some(())
    });
}

/// A byte now and then does not extend the deadline of ten seconds.
fn slowloris() {
    let router = world().router("web.example\n").start();
    let head = b"GET / HTTP/1.1\r\nHost: web.example\r\nX-Slow: 0123456789";
    let hello = ClientHello::chrome("web.example").bytes();
    thread::scope(|scope| {
        for (port, bytes) in [(80, &head[..]), (443, &hello[..])] {
            let router = &router;
            scope.spawn(move || {
                let mut stream = connect(&world().client, router.at(port));
                let start = Instant::now();
                for byte in bytes {
                    if stream.write_all(&[*byte]).is_err() || start.elapsed() > Duration::from_secs(20) {
                        break;
                    }
                    // The answer and the end come in between.
                    stream.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
                    if stream.read(&mut [0; 4096]).is_ok() {
                        break;
                    }
                }
                let elapsed = start.elapsed();
                assert!((8..16).contains(&elapsed.as_secs()), "port {port}: {elapsed:?}");
            });
        }
    });
    for protocol in ["http", "tls"] {
        let refused = |event: &serde_json::Value| event["code"] == "head-timeout" && event["protocol"] == protocol;
        router.event("head-timeout", refused);
    }
}

/// Whoever never says a word does not keep a place for ever either.
fn silent() {
    let router = world().router("web.example\n").start();
    let mut streams = [80, 443].map(|port| connect(&world().client, router.at(port)));
    for stream in &mut streams {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (_, end) = read_to_end(stream);
        assert_eq!(end, End::Clean);
    }
}

/// Proxies that peek spin on a partial hello.
fn three_bytes() {
    let router = world().router("web.example\n").start();
    let mut streams: Vec<_> = [443, 80, 53]
        .iter()
        .map(|&port| connect(&world().client, router.at(port)))
        .collect();
    for stream in &mut streams {
        stream.write_all(&[22, 3, 1]).unwrap();
    }
    thread::sleep(Duration::from_millis(300));
    let before = router.process.cpu_ticks();
    thread::sleep(Duration::from_secs(2));
    let ticks = router.process.cpu_ticks() - before;
    assert!(ticks <= 1, "{ticks} ticks of CPU in 2 s for three waiting connections");
}

fn dns_connections() {
    let router = world().router("echo.example\n").start();
    let idle: Vec<_> = (0..300).map(|_| connect(&world().client, router.at(53))).collect();
    let question = question("echo.example", RecordType::A);
    assert!(ask_udp(&world().client, router.at(53), &question).is_some());
    // Idle ones are closed to make room.
    wait::until(30, "room for a question over TCP", || {
        assert!(router.process.descriptors() < 150, "no cap");
        ask_tcp(&world().client, router.at(53), &question).ok()
    });
    drop(idle);
    let mut quick = connect(&world().client, router.at(53));
    quick.write_all(&framed(&question)).unwrap();
    assert_eq!(
        decode(&system_tests::lab::dns::read_framed(&mut quick).unwrap())
            .answers
            .len(),
        1
    );
}

fn dns_slow_message() {
    let router = world().router("echo.example\n").start();
    let mut stream = connect(&world().client, router.at(53));
    let start = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    for byte in framed(&question("echo.example", RecordType::A)) {
        if stream.write_all(&[byte]).is_err() || matches!(stream.read(&mut [0; 512]), Ok(0)) {
            break;
        }
    }
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_secs(12), "a message may take {elapsed:?}");
}

fn folded() {
    let router = world().router("echo.example\n").start();
    for _ in 0..2000 {
        ask_udp(
            &world().client,
            router.at(53),
            &question("forbidden.example", RecordType::A),
        )
        .unwrap();
    }
    router.refused("name-not-allowed", "forbidden.example");
    assert!(router.mark() < 10, "{} lines", router.mark());
    // At the end, the rest is there as a count.
    let mut router = router;
    assert!(router.stop().success());
    let repeated: u64 = router
        .events()
        .iter()
        .filter_map(|event| event["repeated"].as_u64())
        .sum();
    assert_eq!(repeated, 1999);
}

fn raised() {
    let router = world()
        .router("echo.example\n")
        .through(&["prlimit", "--nofile=100:5000"])
        .start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", router.process.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().nth(3), Some("5000"), "{line}");
}

/// Resident memory of a process in kB.
fn resident(router: &Router) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", router.process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The bound is loose, so that a debug build passes; the benchmarks have the promised figure.
fn memory() {
    let router = world().router("echo.example:7000\n").start();
    let echo = router_port(&router, "echo.example", 7000);
    let open = |count: usize| -> Vec<TcpStream> {
        let mut streams: Vec<_> = (0..count).map(|_| connect(&world().client, echo)).collect();
        for stream in &mut streams {
            stream.write_all(&[b'x'; 100]).unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
        }
        streams
    };
    let first = open(50);
    let before = resident(&router);
    let second = open(400);
    let each = resident(&router).saturating_sub(before) as f64 / 400.0;
    assert!(each < 16.0, "{each:.1} kB per idle connection");
    drop((first, second));
}

/// Names without end under a suffix, on and off the list, cost bounded memory.
fn many_names() {
    let router = world().router(".slot.example\n").start();
    let socket = world().client.enter(|| std::net::UdpSocket::bind("0.0.0.0:0")).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let flood = |from: usize, to: usize| {
        for n in from..to {
            for zone in ["slot.example", "other.example"] {
                socket
                    .send_to(&question(&format!("n{n}.{zone}"), RecordType::A), router.at(53))
                    .unwrap();
                socket.recv(&mut [0; 512]).unwrap();
            }
        }
    };
    flood(0, 3000);
    let before = resident(&router);
    flood(3000, 10_000);
    let grown = resident(&router).saturating_sub(before);
    assert!(grown < 1500, "{grown} kB more for 14000 names");
    assert!(
        router.process.stdout.count() < 3000,
        "{} lines",
        router.process.stdout.count()
    );
    let _ = resolve(&world().client, router.address, "web.slot.example");
    let alive = run(
        world()
            .client
            .command("dig")
            .args([&format!("@{}", router.address), "+short", "x.slot.example"]),
        10,
    );
    assert!(alive.ok().starts_with("127."));
    let mut stream = connect(&world().client, router.at(443));
    drop(stream.write_all(&ClientHello::small("n1.other.example").bytes()));
    let _ = read_to_end(&mut stream);
}
