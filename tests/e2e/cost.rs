//! What the router costs, in system calls: a count does not depend on the machine's mood. `make bench` reports time.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use system_tests::lab::clienthello::ClientHello;
use system_tests::lab::dns::{ask_udp, question};
use system_tests::lab::http::{connect, read_to_end};
use system_tests::lab::process::Process;
use system_tests::lab::suite::Test;
use system_tests::lab::{Router, wait, world};

use hickory_proto::rr::RecordType;

pub(crate) const TESTS: &[Test] = &[
    Test::limited("950_cost_of_a_short_tls_connection", 60, short_connection),
    Test::limited("951_cost_of_an_echo", 60, echo),
    Test::limited("952_cost_of_bulk", 60, bulk),
    Test::limited("953_cost_of_a_dns_query", 60, dns_query),
    Test::limited("954_cost_of_an_http_request", 60, http_request),
];

/// System calls that depend on the scheduler (how many events a wait returns, whether another thread sleeps), not on the
/// work: they are left out of the budgets.
const SCHEDULING: [&str; 4] = ["epoll_wait", "futex", "restart_syscall", "clock_nanosleep"];

/// System calls of the router while `work` runs, without [`SCHEDULING`] and the event log's writes.
fn calls(router: &Router, work: impl FnOnce()) -> u64 {
    let log = format!("/run/lab/tmp/strace.{}", router.process.pid());
    let mut strace = Process::start(
        "strace",
        Command::new("strace").args(["-f", "-c", "-o", &log, "-p", &router.process.pid().to_string()]),
    );
    // Attached to all three threads.
    wait::until(10, "strace", || {
        let status = fs::read_to_string(format!("/proc/{}/status", router.process.pid())).ok()?;
        status
            .lines()
            .any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
            .then_some(())
    });
    thread::sleep(Duration::from_millis(300));
    work();
    thread::sleep(Duration::from_millis(300));
    strace.signal(Signal::INT);
    strace.wait(10);
    let table = fs::read_to_string(log).unwrap();
    let calls = table.lines().skip(2).filter_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (count, name) = (fields.get(3)?.parse::<u64>().ok()?, *fields.last()?);
        let counts = name != "total" && name != "write" && !SCHEDULING.contains(&name);
        counts.then_some(count)
    });
    let calls = calls.sum();
    assert!(calls > 0, "{table}");
    calls
}

/// accept4 twice (the second finds nothing), epoll_ctl four times, socket, setsockopt four times, connect, recvfrom four
/// or five times, sendto twice, shutdown once or twice, close twice.
fn short_connection() {
    const ROUNDS: u64 = 50;
    const BUDGET: u64 = 24;
    let slot = world().slot();
    let router = world().router(".slot.example\n").start();
    let listener = slot.listen(443);
    let hello = ClientHello::chrome(&slot.name).bytes();
    let length = hello.len();
    let server = thread::spawn(move || {
        // One more to warm up: the name is resolved once.
        for _ in 0..=ROUNDS {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut vec![0; length]).unwrap();
            stream.write_all(&[7; 100]).unwrap();
        }
    });
    let connection = || {
        let mut client = connect(&world().client, router.at(443));
        client.write_all(&hello).unwrap();
        assert_eq!(read_to_end(&mut client).0, [7; 100]);
    };
    connection();
    let calls = calls(&router, || (0..ROUNDS).for_each(|_| connection()));
    server.join().unwrap();
    assert!(calls <= ROUNDS * BUDGET, "{calls} for {ROUNDS} connections");
}

/// A pair of connected streams through the router, raw after the hello.
fn tunnel(router: &Router) -> (TcpStream, TcpStream) {
    let slot = world().slot();
    let listener = slot.listen(443);
    let hello = ClientHello::chrome(&slot.name).bytes();
    let mut client = connect(&world().client, router.at(443));
    client.write_all(&hello).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.read_exact(&mut vec![0; hello.len()]).unwrap();
    (client, server)
}

/// One read and one write each way, and no read that finds nothing.
fn echo() {
    const ROUNDS: u64 = 200;
    let router = world().router(".slot.example\n").start();
    let (mut client, mut server) = tunnel(&router);
    let calls = calls(&router, || {
        let mut message = [7; 64];
        for _ in 0..ROUNDS {
            client.write_all(&message).unwrap();
            server.read_exact(&mut message).unwrap();
            server.write_all(&message).unwrap();
            client.read_exact(&mut message).unwrap();
        }
    });
    assert!(calls <= ROUNDS * 4 + 20, "{calls} for {ROUNDS} echoes");
}

/// Two splices for what fits into a pipe, whose 64 slots hold a segment each, and waits that find nothing.
fn bulk() {
    const MEGABYTES: u64 = 64;
    const BUDGET: u64 = 80;
    let router = world().router(".slot.example\n").start();
    let (mut client, mut server) = tunnel(&router);
    let calls = calls(&router, || {
        thread::scope(|scope| {
            scope.spawn(move || {
                let bytes = vec![7; 1 << 20];
                (0..MEGABYTES).for_each(|_| server.write_all(&bytes).unwrap());
            });
            assert_eq!(read_to_end(&mut client).0.len() as u64, MEGABYTES << 20);
        });
    });
    assert!(calls <= MEGABYTES * BUDGET, "{calls} for {MEGABYTES} MB");
}

/// One call to receive it and one to answer.
fn dns_query() {
    const ROUNDS: u64 = 200;
    let router = world().router("echo.example\n").start();
    let question = question("echo.example", RecordType::A);
    let calls = calls(&router, || {
        (0..ROUNDS).for_each(|_| assert!(ask_udp(&world().client, router.at(53), &question).is_some()));
    });
    assert!(calls <= ROUNDS * 2 + 20, "{calls} for {ROUNDS} queries");
}

/// The same as an echo, with every head read on both sides.
fn http_request() {
    const ROUNDS: u64 = 200;
    let slot = world().slot();
    let router = world().router(".slot.example\n").start();
    let listener = slot.listen(80);
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", slot.name);
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let length = request.len();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..=ROUNDS {
            stream.read_exact(&mut vec![0; length]).unwrap();
            stream.write_all(reply).unwrap();
        }
    });
    let mut client = connect(&world().client, router.at(80));
    let mut exchange = || {
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 43];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, reply);
    };
    exchange();
    let calls = calls(&router, || (0..ROUNDS).for_each(|_| exchange()));
    server.join().unwrap();
    assert!(calls <= ROUNDS * 5 + 20, "{calls} for {ROUNDS} requests");
}
