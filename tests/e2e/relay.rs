//! Bytes: every one arrives, ends are carried over, and quiet connections stay.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};
use system_tests::lab::clienthello::ClientHello;
use system_tests::lab::http::{End, LIMIT, connect, read_to_end};
use system_tests::lab::servers::{LARGE, client_key, file_bytes};
use system_tests::lab::suite::Test;
use system_tests::lab::world::Slot;
use system_tests::lab::{Router, run, wait, world};

use crate::tls::{TLS, accept, connect_with_small_segments};

pub(crate) const TESTS: &[Test] = &[
    Test::new("500_relay_haproxy_2505_server_sends_and_closes", send_and_close),
    Test::new("501_relay_upload_and_close", upload_and_close),
    Test::new("502_relay_both_ways_at_once", both_ways),
    Test::new("503_relay_tokio_3876_half_close_by_the_client", half_close_by_client),
    Test::new("504_relay_half_close_by_the_server", half_close_by_server),
    Test::new("505_relay_reset_by_the_server_is_a_reset", reset_by_server),
    Test::new("506_relay_reset_by_the_client_is_a_reset", reset_by_client),
    Test::limited("507_relay_sozu_1323_reader_stops_and_resumes", 60, stopped_reader),
    Test::new(
        "508_relay_golang_75304_idle_spliced_connection_costs_nothing",
        idle_cost,
    ),
    Test::new("509_relay_small_messages_are_not_delayed", no_delay),
    Test::limited("510_relay_downloads_are_exact", 60, downloads),
    Test::limited("511_relay_uploads_are_exact", 60, uploads),
    Test::limited("512_relay_quiet_websocket", 60, quiet_websocket),
    Test::limited("513_relay_quiet_event_stream", 60, quiet_events),
    Test::limited("514_relay_quiet_ssh", 60, quiet_ssh),
    Test::new("515_relay_many_connections_leave_nothing_behind", nothing_left),
    Test::new("516_relay_half_closed_silence_is_limited", half_closed_limit),
    Test::limited("517_relay_more_bulk_flows_than_pipes", 60, many_bulk_flows),
];

/// Sizes around one byte, one TLS record, and one pipe.
const SIZES: [usize; 10] = [1, 2, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_000_000, 4 << 20];

/// How long a quiet connection is left alone, in seconds.
const QUIET: u64 = 10;

/// A connection from the client through a router to a server in the test: raw bytes after a first message, which the
/// router reads.
struct Tunnel {
    client: TcpStream,
    server: TcpStream,
}

impl Tunnel {
    fn new() -> Self {
        Self::over(connect(&world().client, TLS), &world().slot())
    }

    fn through(router: &Router, slot: &Slot) -> Self {
        Self::over(connect(&world().client, router.at(443)), slot)
    }

    fn over(mut client: TcpStream, slot: &Slot) -> Self {
        let listener = slot.listen(443);
        let hello = ClientHello::chrome(&slot.name).bytes();
        client.write_all(&hello).unwrap();
        let mut server = accept(&listener);
        let mut received = vec![0; hello.len()];
        server.read_exact(&mut received).unwrap();
        assert!(received == hello);
        Self { client, server }
    }
}

/// Connects with the smallest receive buffer that the kernel gives: the sender feels every pause of the reader.
fn slow_connect(to: SocketAddr) -> TcpStream {
    let socket = world().client.enter(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        socket.connect_timeout(&to.into(), LIMIT).unwrap();
        socket
    });
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Closing with linger 0 sends a reset.
fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

#[track_caller]
fn assert_same(got: &[u8], expected: &[u8], what: &str) {
    if got != expected {
        let differs = got.iter().zip(expected).position(|(a, b)| a != b);
        panic!(
            "{what}: {} bytes of {}, first difference at {differs:?}",
            got.len(),
            expected.len()
        );
    }
}

/// Shutdown before the pipe is empty (haproxy #2505), truncation at the end (mmproxy-rs #22).
fn send_and_close() {
    let slot = world().slot();
    for size in SIZES {
        for slow in [false, true] {
            let client = if slow {
                slow_connect(TLS)
            } else {
                connect(&world().client, TLS)
            };
            let Tunnel { mut client, mut server } = Tunnel::over(client, &slot);
            let bytes = file_bytes(size);
            let sent = bytes.clone();
            let sender = thread::spawn(move || server.write_all(&sent).map(|()| drop(server)));
            let (got, end) = read_to_end(&mut client);
            sender.join().unwrap().unwrap();
            assert_same(&got, &bytes, &format!("size {size}, slow {slow}"));
            assert_eq!(end, End::Clean, "size {size}, slow {slow}");
        }
    }
}

fn upload_and_close() {
    let slot = world().slot();
    for size in SIZES {
        let Tunnel { mut client, mut server } = Tunnel::through(&world().router, &slot);
        SockRef::from(&server).set_recv_buffer_size(4096).unwrap();
        let bytes = file_bytes(size);
        let sent = bytes.clone();
        let sender = thread::spawn(move || {
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            read_to_end(&mut client)
        });
        let (got, end) = read_to_end(&mut server);
        assert_same(&got, &bytes, &format!("size {size}"));
        assert_eq!(end, End::Clean);
        // The other direction is still open.
        server.write_all(b"received").unwrap();
        drop(server);
        assert_eq!(sender.join().unwrap(), (b"received".to_vec(), End::Clean));
    }
}

fn both_ways() {
    let Tunnel { client, server } = Tunnel::new();
    let (up, down) = (file_bytes(8 << 20), file_bytes((8 << 20) + 1));
    let pump = |mut stream: TcpStream, send: Vec<u8>| {
        let mut reader = stream.try_clone().unwrap();
        let reading = thread::spawn(move || read_to_end(&mut reader));
        thread::spawn(move || {
            stream.write_all(&send).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            reading.join().unwrap()
        })
    };
    let (client, server) = (pump(client, up.clone()), pump(server, down.clone()));
    let (got, end) = server.join().unwrap();
    assert_same(&got, &up, "up");
    assert_eq!(end, End::Clean);
    let (got, end) = client.join().unwrap();
    assert_same(&got, &down, "down");
    assert_eq!(end, End::Clean);
}

/// ekzhang/bore #165, linkerd2 #463: the answer that comes after the client's end.
fn half_close_by_client() {
    let Tunnel { mut client, mut server } = Tunnel::new();
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut server), (b"question".to_vec(), End::Clean));
    let answer = file_bytes(1_000_000);
    let sent = answer.clone();
    let sender = thread::spawn(move || server.write_all(&sent).map(|()| drop(server)));
    let (got, end) = read_to_end(&mut client);
    sender.join().unwrap().unwrap();
    assert_same(&got, &answer, "answer");
    assert_eq!(end, End::Clean);
}

fn half_close_by_server() {
    let Tunnel { mut client, mut server } = Tunnel::new();
    server.write_all(b"all I know").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut client), (b"all I know".to_vec(), End::Clean));
    let more = file_bytes(1_000_000);
    let sent = more.clone();
    let sender = thread::spawn(move || client.write_all(&sent).map(|()| drop(client)));
    let (got, end) = read_to_end(&mut server);
    sender.join().unwrap().unwrap();
    assert_same(&got, &more, "more");
    assert_eq!(end, End::Clean);
}

/// A truncated stream must not look complete, neither while bytes are copied nor when they are spliced.
fn reset_by_server() {
    let slot = world().slot();
    for size in [0, 10, 4 << 20] {
        let Tunnel { mut client, mut server } = Tunnel::through(&world().router, &slot);
        let bytes = file_bytes(size);
        let sender = thread::spawn(move || {
            server.write_all(&bytes).unwrap();
            reset(server);
        });
        let (got, end) = read_to_end(&mut client);
        sender.join().unwrap();
        assert!(got.len() <= size);
        assert_eq!(end, End::Reset, "after {size} bytes");
        world().router.event("close", |event| {
            event["event"] == "close" && event["name"] == slot.name.as_str() && event["reason"] == "reset"
        });
    }
}

fn reset_by_client() {
    let slot = world().slot();
    for size in [0, 10, 4 << 20] {
        let Tunnel { mut client, mut server } = Tunnel::through(&world().router, &slot);
        let bytes = file_bytes(size);
        let sender = thread::spawn(move || {
            client.write_all(&bytes).unwrap();
            reset(client);
        });
        let (got, end) = read_to_end(&mut server);
        sender.join().unwrap();
        assert!(got.len() <= size);
        assert_eq!(end, End::Reset, "after {size} bytes");
    }
}

/// The reader stops for two seconds while pipe and buffers fill up, in segments that fill the slots of a pipe long
/// before its bytes; the tail must still come.
fn stopped_reader() {
    let slot = world().slot();
    let plain = |to| connect(&world().client, to);
    for connect in [
        slow_connect as fn(SocketAddr) -> TcpStream,
        connect_with_small_segments,
        plain,
    ] {
        let Tunnel { mut client, mut server } = Tunnel::over(connect(TLS), &slot);
        let bytes = file_bytes(12 << 20);
        let sent = bytes.clone();
        let sender = thread::spawn(move || {
            server.set_write_timeout(None).unwrap();
            server.write_all(&sent).unwrap();
        });
        let mut got = vec![0; 1 << 20];
        client.read_exact(&mut got).unwrap();
        thread::sleep(Duration::from_secs(2));
        let (rest, end) = read_to_end(&mut client);
        sender.join().unwrap();
        got.extend(rest);
        assert_same(&got, &bytes, "after a pause");
        assert_eq!(end, End::Clean);
    }
}

/// haproxy #2129, h2o #3075, golang/go #63795: a hot loop where nothing moves.
fn idle_cost() {
    let slot = world().slot();
    let router = world().router(".slot.example\n").start();
    let mut tunnels = Vec::new();
    for _ in 0..4 {
        let Tunnel { mut client, mut server } = Tunnel::through(&router, &slot);
        let bytes = file_bytes(4 << 20);
        let sender = thread::spawn(move || server.write_all(&bytes).map(|()| server));
        let mut got = vec![0; 4 << 20];
        client.read_exact(&mut got).unwrap();
        tunnels.push((client, sender.join().unwrap().unwrap()));
    }
    // One that waits for a reader who does not read.
    let Tunnel { client, server } = Tunnel::through(&router, &slot);
    server.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let _ = (&server).write_all(&file_bytes(64 << 20));
    let before = router.process.cpu_ticks();
    thread::sleep(Duration::from_secs(2));
    let ticks = router.process.cpu_ticks() - before;
    assert!(ticks <= 2, "{ticks} ticks of CPU in 2 s of silence");
    drop((client, server));
    // They are still alive.
    for (mut client, mut server) in tunnels {
        client.write_all(b"ping").unwrap();
        let mut ping = [0; 4];
        server.read_exact(&mut ping).unwrap();
        assert_eq!(&ping, b"ping");
    }
}

/// Two small writes and a wait: without TCP_NODELAY on both sides every round costs a delayed ACK of 40 ms.
fn no_delay() {
    const ROUNDS: u32 = 100;
    let Tunnel { mut client, mut server } = Tunnel::new();
    server.set_nodelay(true).unwrap();
    let echo = thread::spawn(move || {
        let mut message = [0; 2];
        while server.read_exact(&mut message).is_ok() {
            server.write_all(&message[..1]).unwrap();
            server.write_all(&message[1..]).unwrap();
        }
    });
    let start = Instant::now();
    for _ in 0..ROUNDS {
        client.write_all(b"a").unwrap();
        client.write_all(b"b").unwrap();
        client.read_exact(&mut [0; 2]).unwrap();
    }
    let each = start.elapsed() / ROUNDS;
    drop(client);
    echo.join().unwrap();
    assert!(
        each < Duration::from_millis(38),
        "{each:?} a round: writes wait for acknowledgements"
    );
}

fn downloads() {
    let client = &world().client;
    let expected = file_bytes(LARGE);
    for (scheme, arguments) in [
        ("https", &["--http1.1"][..]),
        ("https", &["--http2"]),
        ("http", &[]),
        ("https", &["--limit-rate", "8M"]),
    ] {
        let url = format!("{scheme}://web.example/file/{LARGE}");
        let got = run(client.command("curl").arg("-sS").args(arguments).arg(&url), 40);
        assert_same(&got.stdout, &expected, &format!("{url} {arguments:?}"));
    }
    let wget = run(
        client
            .command("wget")
            .args(["-qO-", &format!("https://web.example/file/{LARGE}")]),
        40,
    );
    assert_same(&wget.stdout, &expected, "wget");
}

fn uploads() {
    let client = &world().client;
    for (name, url) in [
        ("tls", "https://web.example/upload/tls"),
        ("http", "http://web.example/upload/http"),
    ] {
        let file = format!("/run/lab/www/file/{LARGE}");
        run(client.command("curl").args(["-sS", "--fail", "-T", &file, url]), 40).ok();
        let got = std::fs::read(format!("/run/lab/www/upload/{name}")).unwrap();
        assert_same(&got, &file_bytes(LARGE), name);
    }
    // Chunked, from a pipe.
    let line = format!("cat /run/lab/www/file/{LARGE} | curl -sS --fail -T - http://web.example/upload/chunked");
    client.sh(&line, 40);
    assert_same(
        &std::fs::read("/run/lab/www/upload/chunked").unwrap(),
        &file_bytes(LARGE),
        "chunked",
    );
}

fn quiet_websocket() {
    let script = format!(
        "
import asyncio, websockets
async def talk(url):
    async with websockets.connect(url, ping_interval=None) as socket:
        for message in 'before', 'after':
            await socket.send(message)
            assert await socket.recv() == message
            await asyncio.sleep({QUIET})
async def main():
    await asyncio.gather(talk('ws://web.example/ws'), talk('wss://web.example/ws'))
asyncio.run(main())
"
    );
    run(world().client.command("/usr/bin/python3").args(["-c", &script]), 50).ok();
}

fn quiet_events() {
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://web.example/events?pause={QUIET}");
        let events = run(world().client.command("curl").args(["-sSN", &url]), 25).ok();
        assert_eq!(events, "data: first\n\ndata: last\n\n");
    }
}

fn quiet_ssh() {
    let line = format!("(echo before; sleep {QUIET}; echo after) | ssh \"$@\" git.example cat");
    let got = run(
        world()
            .client
            .command("sh")
            .args(["-ec", &line, "sh"])
            .args(client_key()),
        40,
    )
    .ok();
    assert_eq!(got, "before\nafter\n");
}

fn nothing_left() {
    let router = world().router(".slot.example\necho.example:7000\n").start();
    let echo = crate::forward::router_port(&router, "echo.example", 7000);
    let exchange = |count: usize| {
        let mut streams: Vec<_> = (0..count).map(|_| connect(&world().client, echo)).collect();
        for stream in &mut streams {
            stream.write_all(&[b'x'; 3000]).unwrap();
        }
        for stream in &mut streams {
            stream.read_exact(&mut [0; 3000]).unwrap();
        }
        streams
    };
    drop(exchange(1));
    // What a first connection opens for good (the resolver's, pipes) is there now.
    let settled = wait::until(5, "the first connection to end", || {
        let count = router.process.descriptors();
        (router.events().iter().filter(|event| event["event"] == "close").count() == 1).then_some(count)
    });
    let streams = exchange(300);
    assert!(router.process.descriptors() >= settled + 600);
    drop(streams);
    wait::until(10, "the descriptors to be given back", || {
        (router.process.descriptors() <= settled + 4).then_some(())
    });
    let count = |kind: &str| router.events().iter().filter(|event| event["event"] == kind).count();
    wait::until(10, "an event for each end", || (count("close") == 301).then_some(()));
    assert_eq!(count("allow"), 301);
    let events = router.events();
    let bytes = |field: &str| events.iter().filter_map(|event| event[field].as_u64()).sum::<u64>();
    assert_eq!((bytes("bytes_out"), bytes("bytes_in")), (301 * 3000, 301 * 3000));
}

fn half_closed_limit() {
    let slot = world().slot();
    let router = world()
        .router(".slot.example\n")
        .args(&["--half-close-limit", "1"])
        .start();
    let Tunnel { mut client, mut server } = Tunnel::through(&router, &slot);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut server), (Vec::new(), End::Clean));
    // The server says nothing and never closes.
    let _ = read_to_end(&mut client);
    router.event("close", |event| event["event"] == "close" && event["reason"] == "idle");
    // An established one is left alone.
    let Tunnel { mut client, mut server } = Tunnel::through(&router, &slot);
    thread::sleep(Duration::from_secs(2));
    client.write_all(b"x").unwrap();
    server.read_exact(&mut [0]).unwrap();
}

/// Pipes are pooled and limited; flows that get none are copied.
fn many_bulk_flows() {
    let slot = world().slot();
    let router = world().router(".slot.example\n").start();
    let tunnels: Vec<_> = (0..80).map(|_| Tunnel::through(&router, &slot)).collect();
    let bytes = file_bytes(1 << 20);
    thread::scope(|scope| {
        for Tunnel { client, server } in tunnels {
            let (mut client, mut server, bytes) = (client, server, &bytes);
            scope.spawn(move || server.write_all(bytes).map(|()| drop(server)));
            scope.spawn(move || {
                let (got, end) = read_to_end(&mut client);
                assert_same(&got, bytes, "one of many");
                assert_eq!(end, End::Clean);
            });
        }
    });
}
