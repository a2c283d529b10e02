//! Port 80: real HTTP clients, and requests that no client should send.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::SockRef;
use system_tests::lab::dns::resolve;
use system_tests::lab::http::{Answer, End, connect, field, read_answer, read_head, read_to_end, recorder};
use system_tests::lab::servers::file_bytes;
use system_tests::lab::suite::Test;
use system_tests::lab::world::ROUTER;
use system_tests::lab::{run, wait, world};

use crate::tls::accept;

pub(crate) const TESTS: &[Test] = &[
    Test::new("300_http_curl_wget_python_node", clients),
    Test::new("301_http_unlisted_host_is_a_403_that_says_why", unlisted),
    Test::limited("302_http_refusals_have_their_status_and_code", 90, refusals),
    Test::new("303_http_httpjail_57_second_request_for_another_host", second_host),
    Test::new("304_http_dsbx_30176_pipelined_request_for_another_host", pipelined_host),
    Test::new(
        "305_http_pingora_rustsec_2026_0033_upgrade_before_101",
        upgrade_before_101,
    ),
    Test::new(
        "306_http_pingora_rustsec_2026_0034_http10_transfer_encoding",
        http10_transfer_encoding,
    ),
    Test::new(
        "307_http_gunicorn_3590_refusal_of_an_upload_is_read_whole",
        refused_upload,
    ),
    Test::new("308_http_httparse_217_large_head_byte_by_byte", large_head),
    Test::new("309_http_keep_alive", keep_alive),
    Test::new("310_http_bodies_are_exact", bodies),
    Test::new("311_http_pipelined_requests_for_one_host", pipelined),
    Test::new("312_http_heads_pass_unaltered", unaltered),
    Test::new("313_http_responses_without_a_body", without_body),
    Test::new("314_http_expect_100_continue", expect_continue),
    Test::new("315_http_websocket", websocket),
    Test::new("316_http_absolute_form", absolute_form),
    Test::new("317_http_unreachable_upstream_is_a_502", unreachable),
    Test::new("318_http_early_answer_to_an_upload", early_answer),
    Test::new("319_http_truncated_response_is_not_a_clean_end", truncated_response),
    Test::new("320_http_upstream_that_speaks_no_http", foreign_upstream),
    Test::new("321_http_trailing_dot_and_port_in_host", host_spellings),
    Test::new("322_http_keep_alive_after_a_read_that_took_all", keep_alive_after_large),
    Test::new("323_http_clients_that_give_up_hold_nothing", clients_that_give_up),
    Test::new("324_http_request_cut_in_its_body_resets_the_upstream", cut_request),
];

/// The shared router's port.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(ROUTER), 80);

/// A complete answer that keeps the connection.
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Sends bytes to the shared router and reads one answer and the end of the connection.
#[track_caller]
fn send(to: SocketAddr, bytes: &[u8]) -> (Answer, End) {
    let mut stream = connect(&world().client, to);
    let _ = stream.write_all(bytes);
    let answer = read_answer(&mut stream);
    let (rest, end) = read_to_end(&mut stream);
    assert!(
        rest.is_empty(),
        "more than one answer: {:?}",
        String::from_utf8_lossy(&rest)
    );
    (answer, end)
}

fn clients() {
    let client = &world().client;
    let page = run(
        client
            .command("curl")
            .args(["-sS", "http://web.example/", "http://api.example/"]),
        15,
    )
    .ok();
    assert!(
        page.contains("hello to web.example over HTTP/1.1") && page.contains("hello to api.example"),
        "{page}"
    );
    let page = run(
        client
            .command("wget")
            .args(["-qO-", "http://web.example/", "http://plain.example/"]),
        15,
    )
    .ok();
    assert!(
        page.contains("web says hello") && page.contains("plain says hello"),
        "{page}"
    );
    let python = "import urllib.request; print(urllib.request.urlopen('http://web.example/', timeout=10).read())";
    let page = run(client.command("/usr/bin/python3").args(["-c", python]), 15).ok();
    assert!(page.contains("web says hello"), "{page}");
    let node = "require('http').get('http://web.example/', (response) => response.pipe(process.stdout))";
    let page = run(client.command("node").args(["-e", node]), 15).ok();
    assert!(page.contains("web says hello"), "{page}");
    world().router.event("allow", |event| {
        event["event"] == "allow" && event["protocol"] == "http" && event["name"] == "web.example"
    });
}

fn unlisted() {
    let client = &world().client;
    let curl = ["-sS", "-i", "-H", "Host: forbidden.example", "http://web.example/"];
    let answer = run(client.command("curl").args(curl), 15).ok();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    for word in ["sandbox", "forbidden.example", "allowlist", "name-not-allowed"] {
        assert!(answer.contains(word), "{word} in {answer}");
    }
    assert_eq!(field(&answer, "connection").as_deref(), Some("close"), "{answer}");
    assert!(
        field(&answer, "content-type").is_some_and(|kind| kind.starts_with("text/plain")),
        "{answer}"
    );
    let event = world().router.event("the refusal", |event| {
        event["event"] == "refuse" && event["protocol"] == "http" && event["name"] == "forbidden.example"
    });
    assert_eq!(event["code"], "name-not-allowed");
    assert_eq!(event["port"], 80);
    // HEAD has the same head and no body.
    let head = run(
        client
            .command("curl")
            .args(["-sS", "-I", "-H", "Host: forbidden.example", "http://web.example/"]),
        15,
    );
    assert!(head.ok().starts_with("HTTP/1.1 403 "));
}

fn refusals() {
    let host = "Host: web.example\r\n";
    let long = format!("X: {}\r\n", "x".repeat(16 * 1024));
    let many = "X: y\r\n".repeat(101);
    let get = |fields: &str| format!("GET / HTTP/1.1\r\n{fields}\r\n");
    let post = |fields: &str| format!("POST / HTTP/1.1\r\n{host}{fields}\r\n");
    let cases: Vec<(u16, &str, String)> = vec![
        (400, "missing-host", get("")),
        (400, "missing-host", "GET / HTTP/1.0\r\n\r\n".into()),
        (400, "duplicate-host", get(&format!("{host}{host}"))),
        (
            400,
            "duplicate-host",
            get(&format!("{host}host: forbidden.example\r\n")),
        ),
        (400, "invalid-host", get("Host: \r\n")),
        // RFC 9112 section 5 has white space around a value ignored; not every server does.
        (400, "invalid-host", get("Host: web.example \r\n")),
        (400, "invalid-host", get("Host:\tweb.example\r\n")),
        (400, "invalid-host", get("Host: web.example:8080\r\n")),
        (400, "invalid-host", get("Host: user@web.example\r\n")),
        (400, "invalid-host", get("Host: web.example, forbidden.example\r\n")),
        (400, "invalid-host", get("Host: web.example/path\r\n")),
        (403, "ip-literal", get("Host: 127.0.0.1\r\n")),
        (403, "ip-literal", get("Host: [::1]\r\n")),
        (403, "ip-literal", get("Host: 0x7f.1\r\n")),
        (
            400,
            "host-mismatch",
            format!("GET http://forbidden.example/ HTTP/1.1\r\n{host}\r\n"),
        ),
        (
            400,
            "host-mismatch",
            format!("GET http://api.example/ HTTP/1.1\r\n{host}\r\n"),
        ),
        (
            400,
            "malformed-request",
            format!("GET https://web.example/ HTTP/1.1\r\n{host}\r\n"),
        ),
        (400, "malformed-request", get(&format!("{host}X: a\r\n folded\r\n"))),
        (400, "malformed-request", get(&format!("{host}X : a\r\n"))),
        (400, "malformed-request", get(&format!("{host}X: a\rb\r\n"))),
        (400, "malformed-request", get(&format!("{host}X: a\0b\r\n"))),
        (
            400,
            "malformed-request",
            format!("GET / HTTP/1.1\n{}\n", host.replace('\r', "")),
        ),
        (400, "malformed-request", get(&format!(" {host}"))),
        (400, "malformed-request", format!("GET / HTTP/9.9\r\n{host}\r\n")),
        (400, "malformed-request", "hello\r\n\r\n".into()),
        (400, "malformed-request", "\x16\x03\x01\x00\x05hello\r\n\r\n".into()),
        (
            400,
            "ambiguous-framing",
            post("Content-Length: 3\r\nContent-Length: 4\r\n"),
        ),
        (
            400,
            "ambiguous-framing",
            post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
        ),
        (400, "ambiguous-framing", post("Content-Length: +3\r\n")),
        (400, "ambiguous-framing", post("Content-Length: 3, 3\r\n")),
        (400, "ambiguous-framing", post("Content-Length: 0x10\r\n")),
        (
            400,
            "ambiguous-framing",
            post("Content-Length: 18446744073709551616\r\n"),
        ),
        (
            501,
            "unsupported-transfer-encoding",
            post("Transfer-Encoding: gzip, chunked\r\n"),
        ),
        (
            501,
            "unsupported-transfer-encoding",
            post("Transfer-Encoding: chunked, identity\r\n"),
        ),
        (
            501,
            "unsupported-transfer-encoding",
            post("Transfer-Encoding: xchunked\r\n"),
        ),
        (
            405,
            "connect-method",
            format!("CONNECT web.example:443 HTTP/1.1\r\n{host}\r\n"),
        ),
        (
            405,
            "connect-method",
            "CONNECT forbidden.example:443 HTTP/1.1\r\nHost: forbidden.example\r\n\r\n".into(),
        ),
        (505, "cleartext-http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into()),
        (
            505,
            "cleartext-http2",
            get(&format!(
                "{host}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
            )),
        ),
        (431, "head-too-large", get(&format!("{host}{long}"))),
        (431, "head-too-large", get(&format!("{host}{many}"))),
    ];
    let mut failures = Vec::new();
    for (status, code, request) in cases {
        // A router of its own for each: equal refusals in a row are folded.
        let router = world().router("web.example\napi.example\n").start();
        let (answer, end) = send(router.at(80), request.as_bytes());
        let refusal = router.event("a refusal", |event| event["event"] == "refuse");
        let allowed = router.events().iter().any(|event| event["event"] == "allow");
        let right = answer.status == status
            && refusal["code"] == code
            && refusal["protocol"] == "http"
            && end == End::Clean
            && !allowed
            && field(&answer.head, "connection").as_deref() == Some("close")
            && answer.text().contains(code);
        if !right {
            let shown = &request[..request.len().min(120)];
            failures.push(format!(
                "{shown:?}\n  expected {status} {code}, got {end:?} {refusal}\n  {answer:?}"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn get(host: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

fn second_host() {
    let slot = world().slot();
    let seen = recorder(slot.listen(80), OK);
    for other in ["forbidden.example", "web.example"] {
        let mut stream = connect(&world().client, HTTP);
        stream.write_all(&get(&slot.name, "/first")).unwrap();
        assert_eq!(read_answer(&mut stream).text(), "ok");
        stream.write_all(&get(other, "/second")).unwrap();
        let answer = read_answer(&mut stream);
        assert_eq!(answer.status, 421, "{other}: {answer:?}");
        assert_eq!(field(&answer.head, "connection").as_deref(), Some("close"));
        assert_eq!(read_to_end(&mut stream), (Vec::new(), End::Clean));
        assert_eq!(
            seen.recv_timeout(Duration::from_secs(10)).unwrap(),
            get(&slot.name, "/first"),
            "{other}"
        );
        world().router.refused("host-changed", other);
    }
}

fn pipelined_host() {
    let slot = world().slot();
    let seen = recorder(slot.listen(80), OK);
    let mut stream = connect(&world().client, HTTP);
    stream
        .write_all(&[get(&slot.name, "/first"), get("forbidden.example", "/second")].concat())
        .unwrap();
    assert_eq!(read_answer(&mut stream).text(), "ok");
    assert_eq!(read_answer(&mut stream).status, 421);
    assert_eq!(read_to_end(&mut stream), (Vec::new(), End::Clean));
    assert_eq!(
        seen.recv_timeout(Duration::from_secs(10)).unwrap(),
        get(&slot.name, "/first")
    );
    // Behind a body of a known length, and behind a chunked one.
    for body in [
        "Content-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let first = format!("POST / HTTP/1.1\r\nHost: {}\r\n{body}", slot.name).into_bytes();
        let mut stream = connect(&world().client, HTTP);
        stream
            .write_all(&[first.clone(), get("forbidden.example", "/second")].concat())
            .unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        let _ = read_to_end(&mut stream);
        assert_eq!(seen.recv_timeout(Duration::from_secs(10)).unwrap(), first);
    }
}

/// The client asks for an upgrade and goes on as if it had it; the server answers 200.
fn upgrade_before_101() {
    let slot = world().slot();
    let seen = recorder(slot.listen(80), OK);
    let first = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        slot.name
    )
    .into_bytes();
    let mut stream = connect(&world().client, HTTP);
    stream
        .write_all(&[first.clone(), get("forbidden.example", "/smuggled")].concat())
        .unwrap();
    assert_eq!(read_answer(&mut stream).status, 200);
    assert_eq!(read_answer(&mut stream).status, 421);
    assert_eq!(seen.recv_timeout(Duration::from_secs(10)).unwrap(), first);
}

fn http10_transfer_encoding() {
    let slot = world().slot();
    let head = format!(
        "POST / HTTP/1.0\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        slot.name
    );
    let (answer, _) = send(HTTP, format!("{head}0\r\n\r\nGET / HTTP/1.1\r\n").as_bytes());
    assert!(answer.status == 501 || answer.status == 400, "{answer:?}");
}

fn refused_upload() {
    let mut request = b"POST / HTTP/1.1\r\nHost: forbidden.example\r\nContent-Length: 1048576\r\n\r\n".to_vec();
    request.resize(request.len() + (1 << 20), b'x');
    let mut stream = connect(&world().client, HTTP);
    stream.write_all(&request).unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!(answer.status, 403);
    assert!(answer.text().contains("forbidden.example"));
    assert_eq!(read_to_end(&mut stream), (Vec::new(), End::Clean));
    let curl = [
        "-sS",
        "--data-binary",
        "@/run/lab/www/file/65537",
        "-H",
        "Host: forbidden.example",
        "http://web.example/",
    ];
    assert!(
        run(world().client.command("curl").args(curl), 15)
            .ok()
            .contains("forbidden.example")
    );
}

fn large_head() {
    let slot = world().slot();
    let seen = recorder(slot.listen(80), OK);
    let router = world().router(".slot.example\n").start();
    let filler = "y".repeat(15_000);
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nX: {filler}\r\n\r\n", slot.name);
    let before = router.process.cpu_ticks();
    let mut stream = connect(&world().client, router.at(80));
    for byte in request.bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(read_answer(&mut stream).text(), "ok");
    drop(stream);
    assert!(
        seen.recv_timeout(Duration::from_secs(10)).unwrap() == request.as_bytes(),
        "altered"
    );
    // 15000 reads cost some 0.1 s in a debug build; looking at the whole head each time would cost ten times that.
    let ticks = router.process.cpu_ticks() - before;
    assert!(ticks < 100, "{ticks} ticks of CPU for one head");
}

fn keep_alive() {
    let script = "
import http.client
connection = http.client.HTTPConnection('web.example', timeout=10)
local = set()
for n in range(50):
    connection.request('GET', '/file/16385' if n % 2 else '/')
    local.add(connection.sock.getsockname())
    body = connection.getresponse().read()
    assert len(body) == 16385 or b'web says hello' in body, body
print(len(local))
";
    let connections = run(world().client.command("/usr/bin/python3").args(["-c", script]), 20).ok();
    assert_eq!(connections.trim(), "1");
}

/// A read of exactly what there was leaves the socket marked readable: the next request must be heard all the same.
fn keep_alive_after_large() {
    for size in [65_536, 1_048_576] {
        let slot = world().slot();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
        let reply = [head.into_bytes(), file_bytes(size)].concat();
        let _server = recorder(slot.listen(80), reply.leak());
        let mut stream = connect(&world().client, HTTP);
        for round in 0..5 {
            stream.write_all(&get(&slot.name, "/")).unwrap();
            let answer = read_answer(&mut stream);
            assert_eq!((answer.status, answer.body.len()), (200, size), "round {round}");
            // The router waits for a request, or for the upstream to close, before the next one comes.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn bodies() {
    let client = &world().client;
    for size in ["0", "1", "2", "16383", "16384", "16385", "65535", "65536", "65537"] {
        let url = format!("http://web.example/file/{size}");
        let got = run(client.command("curl").args(["-sS", &url]), 15);
        assert!(
            got.stdout == file_bytes(size.parse().unwrap()),
            "{size}: {} bytes",
            got.stdout.len()
        );
        // Up and back: by Content-Length, and chunked.
        let file = format!("@/run/lab/www/file/{size}");
        for framing in ["X-Framing: length", "Transfer-Encoding: chunked"] {
            let curl = [
                "-sS",
                "--data-binary",
                &file,
                "-H",
                framing,
                "-H",
                "Expect:",
                "http://web.example/echo",
            ];
            let got = run(client.command("curl").args(curl), 15);
            assert!(
                got.stdout == file_bytes(size.parse().unwrap()),
                "{size} {framing}: {got}"
            );
        }
    }
}

fn pipelined() {
    let mut stream = connect(&world().client, HTTP);
    let paths = ["/file/65537", "/", "/file/1", "/file/16384", "/"];
    let requests: Vec<u8> = paths.iter().flat_map(|path| get("web.example", path)).collect();
    stream.write_all(&requests).unwrap();
    for path in paths {
        let answer = read_answer(&mut stream);
        match path.strip_prefix("/file/") {
            Some(size) => assert!(answer.body == file_bytes(size.parse().unwrap()), "{path}"),
            None => assert!(answer.text().contains("hello to web.example"), "{answer:?}"),
        }
    }
}

fn unaltered() {
    let slot = world().slot();
    let seen = recorder(slot.listen(80), OK);
    let odd = format!(
        "OPTIONS /a%2fb?c=d&e HTTP/1.1\r\nhOsT:  {}\r\nX-Empty:\r\nX-Utf8: \u{e4}\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        slot.name.to_uppercase()
    );
    let mut stream = connect(&world().client, HTTP);
    stream.write_all(odd.as_bytes()).unwrap();
    let (answer, end) = read_to_end(&mut stream);
    assert_eq!((answer.as_slice(), end), (OK, End::Clean));
    assert_eq!(
        String::from_utf8(seen.recv_timeout(Duration::from_secs(10)).unwrap()).unwrap(),
        odd
    );
}

fn without_body() {
    let mut stream = connect(&world().client, HTTP);
    // HEAD announces a length and sends no body.
    stream
        .write_all(b"HEAD /file/65537 HTTP/1.1\r\nHost: web.example\r\n\r\n")
        .unwrap();
    assert_eq!(
        field(&read_head(&mut stream), "content-length").as_deref(),
        Some("65537")
    );
    stream.write_all(&get("web.example", "/")).unwrap();
    let answer = read_answer(&mut stream);
    assert!(answer.text().contains("web says hello"));
    // 304, after a full answer that gave the date.
    stream.write_all(&get("web.example", "/file/1")).unwrap();
    let modified = field(&read_answer(&mut stream).head, "last-modified").unwrap();
    let request = format!("GET /file/1 HTTP/1.1\r\nHost: web.example\r\nIf-Modified-Since: {modified}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 304 "));
    stream.write_all(&get("web.example", "/")).unwrap();
    assert!(read_answer(&mut stream).text().contains("web says hello"));
    // To the end of the connection, as HTTP/1.0 servers do.
    let slot = world().slot();
    let _seen = recorder_once(slot.listen(80), b"HTTP/1.0 200 OK\r\n\r\nuntil the end");
    let (answer, end) = send(HTTP, &get(&slot.name, "/"));
    assert_eq!((answer.text().as_str(), end), ("until the end", End::Clean));
}

/// Answers the first request of one connection and closes.
fn recorder_once(listener: std::net::TcpListener, reply: &'static [u8]) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut stream = accept(&listener);
        let head = read_head(&mut stream);
        stream.write_all(reply).unwrap();
        head
    })
}

fn expect_continue() {
    let curl = [
        "-sS",
        "-v",
        "-H",
        "Expect: 100-continue",
        "--expect100-timeout",
        "10",
        "--data-binary",
    ];
    let url = ["@/run/lab/www/file/65537", "http://web.example/echo"];
    let got = run(world().client.command("curl").args(curl).args(url), 9);
    assert!(got.stdout == file_bytes(65537), "{got}");
    assert!(got.err().contains("HTTP/1.1 100 Continue"), "{}", got.err());
}

fn websocket() {
    let script = "
import asyncio, websockets
async def main():
    for url in 'ws://web.example/ws', 'wss://web.example/ws':
        async with websockets.connect(url) as socket:
            for message in 'hello', 'x' * 200000, b'bytes':
                await socket.send(message)
                assert await socket.recv() == message
        print('ok')
asyncio.run(main())
";
    let got = run(world().client.command("/usr/bin/python3").args(["-c", script]), 20).ok();
    assert_eq!(got, "ok\nok\n");
}

fn absolute_form() {
    let proxy = ["-sS", "-x", "http://web.example:80", "http://web.example/"];
    let page = run(world().client.command("curl").args(proxy), 15).ok();
    assert!(page.contains("web says hello to web.example"), "{page}");
    let proxy = ["-sS", "-x", "http://web.example:80", "http://forbidden.example/"];
    let page = run(world().client.command("curl").args(proxy), 15).ok();
    assert!(
        page.contains("forbidden.example") && page.contains("allowlist"),
        "{page}"
    );
}

fn unreachable() {
    let (answer, end) = send(HTTP, &get("closed.example", "/"));
    assert_eq!((answer.status, end), (502, End::Clean), "{answer:?}");
    assert!(
        answer.text().contains("closed.example") && answer.text().contains("upstream-unreachable"),
        "{answer:?}"
    );
    world().router.event("the refusal", |event| {
        event["code"] == "upstream-unreachable" && event["protocol"] == "http" && event["name"] == "closed.example"
    });
}

/// The server refuses an upload before it has it all: the client must get the answer.
fn early_answer() {
    let slot = world().slot();
    let listener = slot.listen(80);
    let server = std::thread::spawn(move || {
        let mut stream = accept(&listener);
        let _head = read_head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch")
            .unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // As nginx does: it reads on for a while.
        let mut sink = vec![0; 1 << 20];
        let _ = stream.read_exact(&mut sink);
    });
    let mut request = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 8388608\r\n\r\n",
        slot.name
    )
    .into_bytes();
    request.resize(request.len() + (2 << 20), b'x');
    let mut stream = connect(&world().client, HTTP);
    let _ = stream.write_all(&request);
    let answer = read_answer(&mut stream);
    assert_eq!((answer.status, answer.text().as_str()), (413, "much"));
    drop(stream);
    server.join().unwrap();
}

/// The upstream never answers, and the clients do not wait for it: what they held must come back.
fn clients_that_give_up() {
    let world = world();
    let slot = world.slot();
    let listener = slot.listen(80);
    let _server = std::thread::spawn(move || {
        let _held: Vec<TcpStream> = listener.incoming().map_while(Result::ok).collect();
    });
    let router = world
        .router(&format!("{}\n", slot.name))
        .args(&["--half-close-limit", "1"])
        .start();
    let before = router.process.descriptors();
    let whole = get(&slot.name, "/");
    let cut = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\nabc",
        slot.name
    )
    .into_bytes();
    for (request, reset) in [(&whole, false), (&whole, true), (&cut, false), (&cut, true)] {
        let mark = router.mark();
        for _ in 0..20 {
            let mut stream = connect(&world.client, router.at(80));
            stream.write_all(request).unwrap();
            router.event_after(mark, "the upstream's side", |event| event["event"] == "allow");
            if reset {
                SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
            }
        }
        wait::until(20, "descriptors to be given back", || {
            (router.process.descriptors() <= before + 4).then_some(())
        });
    }
}

/// A server must not take the part of an upload that came for all of it, and not wait for the rest for ever.
fn cut_request() {
    for body in ["Content-Length: 100\r\n\r\nabc", "Content-Length: 1000000\r\n\r\nabc"] {
        let slot = world().slot();
        let listener = slot.listen(80);
        let mut stream = connect(&world().client, HTTP);
        write!(stream, "POST / HTTP/1.1\r\nHost: {}\r\n{body}", slot.name).unwrap();
        let mut upstream = accept(&listener);
        let _head = read_head(&mut upstream);
        drop(stream);
        let (_, end) = read_to_end(&mut upstream);
        assert_eq!(end, End::Reset, "{body}");
    }
}

fn truncated_response() {
    for reply in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot a hundred"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let slot = world().slot();
        let _server = recorder_once(slot.listen(80), reply);
        let mut stream = connect(&world().client, HTTP);
        stream.write_all(&get(&slot.name, "/")).unwrap();
        let (_, end) = read_to_end(&mut stream);
        assert_eq!(end, End::Reset, "{:?}", String::from_utf8_lossy(reply));
    }
}

fn foreign_upstream() {
    let slot = world().slot();
    let _server = recorder_once(slot.listen(80), b"SSH-2.0-OpenSSH_9.2\r\n\r\n");
    let (answer, _) = send(HTTP, &get(&slot.name, "/"));
    assert_eq!(answer.status, 502, "{answer:?}");
    world().router.refused("malformed-response", &slot.name);
    // 101 without a request for it (RFC 9110 section 15.2.2).
    let slot = world().slot();
    let _server = recorder_once(
        slot.listen(80),
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    );
    let (answer, _) = send(HTTP, &get(&slot.name, "/"));
    assert_eq!(answer.status, 502, "{answer:?}");
}

/// stripe/smokescreen CVE-2022-24825: spellings of a name that dodge a rule.
fn host_spellings() {
    let status = |host: &str| send_close(&format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    for host in ["web.example", "WEB.Example", "web.example:80"] {
        assert_eq!(status(host), 200, "{host}");
    }
    for host in [
        "forbidden.example.",
        "FORBIDDEN.example",
        "web.example..",
        "forbidden.example:80",
        ".web.example",
    ] {
        assert!(matches!(status(host), 400 | 403), "{host}");
    }
    // curl passes the dot on as it stands.
    let dotted = run(
        world()
            .client
            .command("curl")
            .args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://web.example./"]),
        15,
    );
    assert!(matches!(dotted.ok().as_str(), "200" | "400"));
    let _ = resolve(&world().client, ROUTER, "web.example.");
}

fn send_close(request: &str) -> u16 {
    let mut stream: TcpStream = connect(&world().client, HTTP);
    stream.write_all(request.as_bytes()).unwrap();
    read_answer(&mut stream).status
}
