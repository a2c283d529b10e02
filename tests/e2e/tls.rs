//! Port 443: real TLS clients, and ClientHellos that no client should send.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use system_tests::lab::clienthello::{ClientHello, alert, extension, prefixed, record, server_name};
use system_tests::lab::dns::resolve;
use system_tests::lab::http::{End, LIMIT, connect, read_to_end};
use system_tests::lab::suite::Test;
use system_tests::lab::world::{ROUTER, Slot};
use system_tests::lab::{run, world};

pub(crate) const TESTS: &[Test] = &[
    Test::new("200_tls_curl_with_openssl", curl),
    Test::new("201_tls_curl_with_gnutls", curl_gnutls),
    Test::new("202_tls_wget", wget),
    Test::new("203_tls_gnutls_cli", gnutls_cli),
    Test::new("204_tls_openssl_s_client", s_client),
    Test::new("205_tls_python", python),
    Test::new("206_tls_node", node),
    Test::new("207_tls_http2_connections_are_not_shared_by_names", coalescing),
    Test::limited("208_tls_chromium", 60, chromium),
    Test::new("210_tls_unlisted_name_is_an_unrecognized_name_alert", unlisted),
    Test::new("211_tls_missing_name", missing_name),
    Test::limited("212_tls_refusals_have_their_codes", 90, refusals),
    Test::new("213_tls_sniproxy_142_ip_literals", ip_literals),
    Test::new("214_tls_alert_is_read_however_much_was_sent", alert_is_read),
    Test::new("215_tls_tinyproxy_627_suffix_matching", suffix_matching),
    Test::new(
        "216_tls_name_of_another_address_goes_by_its_own_rule",
        name_of_another_address,
    ),
    Test::new("217_tls_net4people_393_ech", ech),
    Test::new("218_tls_unreachable_upstream_is_an_alert", unreachable),
    Test::new("219_tls_udp_443_is_closed", udp_is_closed),
    Test::new("220_tls_browser_hellos_arrive_unaltered", browsers),
    Test::limited("221_tls_traefik_cve_2026_32305_split_records", 60, split_records),
    Test::limited("222_tls_haproxy_3148_split_segments", 60, split_segments),
    Test::new("223_tls_one_byte_at_a_time", one_byte_at_a_time),
    Test::new("224_tls_ingress_nginx_11843_pause_in_the_name", pause_in_the_name),
    Test::new("225_tls_traefik_12871_large_hellos", large_hellos),
    Test::new(
        "226_tls_envoy_40544_large_hellos_through_the_forwarder",
        large_hellos_through_forwarder,
    ),
    Test::new("227_tls_many_small_records", many_records),
];

/// The shared router's port.
pub(crate) const TLS: SocketAddr = SocketAddr::new(IpAddr::V4(ROUTER), 443);

const UNRECOGNIZED_NAME: u8 = 112;

fn curl() {
    let client = &world().client;
    let get = |arguments: &[&str]| run(client.command("curl").arg("-sS").args(arguments), 15).ok();
    assert!(get(&["https://web.example/"]).contains("web says hello to web.example over HTTP/2.0"));
    assert!(get(&["--http1.1", "https://web.example/"]).contains("over HTTP/1.1"));
    assert!(get(&["--tlsv1.3", "https://web.example/"]).contains("web says hello"));
    assert!(get(&["https://plain.example/"]).contains("plain says hello to plain.example over HTTP/1.1 and TLSv1.2"));
    assert!(get(&["https://MIXED.example/"]).contains("web says hello to mixed.example"));
    assert!(get(&["https://api.example/"]).contains("hello to api.example"));
    let event = world().router.event("web.example allowed", |event| {
        event["event"] == "allow" && event["name"] == "web.example" && event["protocol"] == "tls"
    });
    assert_eq!(event["port"], 443);
    assert_eq!(event["upstream"], "203.0.113.10:443");
    assert_eq!(event["entry"], 2, "the line of web.example");
    let event = world().router.event("web.example closed", |event| {
        event["event"] == "close" && event["name"] == "web.example" && event["protocol"] == "tls"
    });
    assert!(
        event["bytes_out"].as_u64().unwrap() > 100 && event["bytes_in"].as_u64().unwrap() > 100,
        "{event}"
    );
    let refused = run(client.command("curl").args(["-sS", "https://forbidden.example/"]), 15).fails();
    assert!(refused.contains("Could not resolve host"), "{refused}");
}

fn curl_gnutls() {
    let script = "
import io, pycurl
assert 'GnuTLS' in pycurl.version, pycurl.version
for url in 'https://web.example/', 'https://plain.example/':
    body = io.BytesIO()
    curl = pycurl.Curl()
    curl.setopt(curl.URL, url)
    curl.setopt(curl.WRITEDATA, body)
    curl.perform()
    print(body.getvalue().decode())
";
    let pages = run(world().client.command("/usr/bin/python3").args(["-c", script]), 15).ok();
    assert!(
        pages.contains("web says hello") && pages.contains("plain says hello"),
        "{pages}"
    );
}

/// mihomo #1711, gost #356: proxies that recognised every client but wget.
fn wget() {
    let page = run(
        world()
            .client
            .command("wget")
            .args(["-qO-", "https://web.example/", "https://plain.example/"]),
        15,
    );
    let page = page.ok();
    assert!(
        page.contains("web says hello") && page.contains("plain says hello"),
        "{page}"
    );
}

fn gnutls_cli() {
    let client = &world().client;
    let request = "printf 'GET / HTTP/1.0\\r\\nHost: web.example\\r\\n\\r\\n' | gnutls-cli";
    let page = client.sh(&format!("{request} --no-ca-verification web.example"), 15);
    assert!(page.contains("web says hello"), "{page}");
    let refused = format!("{request} --sni-hostname=forbidden.example --verify-hostname=web.example web.example");
    let refused = run(client.command("sh").args(["-c", &refused]), 15).fails();
    assert!(refused.contains("The server name sent was not recognized"), "{refused}");
}

fn s_client() {
    let client = &world().client;
    for version in ["-tls1_2", "-tls1_3"] {
        let line =
            format!("openssl s_client {version} -verify_return_error -connect api.example:443 -brief </dev/null 2>&1");
        let page = client.sh(&line, 15);
        assert!(page.contains("Verification: OK"), "{page}");
    }
}

fn python() {
    let script = "
import urllib.request
print(urllib.request.urlopen('https://web.example/', timeout=10).read().decode())
try:
    urllib.request.urlopen('https://forbidden.example/', timeout=10)
except urllib.error.URLError as error:
    print('refused:', error.reason)
";
    let page = run(world().client.command("/usr/bin/python3").args(["-c", script]), 15).ok();
    assert!(
        page.contains("web says hello") && page.contains("refused: [Errno -"),
        "{page}"
    );
}

fn node() {
    let script = "
const https = require('https'), http2 = require('http2');
https.get('https://web.example/', (response) => response.pipe(process.stdout));
const session = http2.connect('https://api.example');
session.on('error', (error) => { throw error; });
const stream = session.request({':path': '/'});
stream.on('data', (data) => process.stdout.write(data));
stream.on('end', () => session.close());
stream.end();
";
    let mut node = world().client.command("node");
    node.env("NODE_EXTRA_CA_CERTS", world().authority.certificate())
        .args(["-e", script]);
    let pages = run(&mut node, 15).ok();
    assert!(pages.contains("hello to web.example over HTTP/1.1"), "{pages}");
    assert!(pages.contains("hello to api.example over HTTP/2.0"), "{pages}");
}

/// A browser as people use it: its hello is over one MTU, with a post-quantum key share and GREASE ECH.
fn chromium() {
    let database = "sql:/run/lab/home/.pki/nssdb";
    let script = format!(
        "mkdir -p /run/lab/home/.pki/nssdb
         certutil -d {database} -N --empty-password
         certutil -d {database} -A -t C,, -n lab -i /run/lab/ca/ca.pem"
    );
    world().client.sh(&script, 15);
    // All but the first three keep it from talking to its maker's hosts.
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--user-data-dir=/run/lab/tmp/chromium",
        "--dump-dom",
    ];
    let get = |url: &str| run(world().client.command("chromium").args(flags).arg(url), 40);
    let page = get("https://web.example/").ok();
    assert!(page.contains("web says hello to web.example over HTTP/2.0"), "{page}");
    world().router.event("a browser's hello", |event| {
        event["event"] == "allow" && event["name"] == "web.example" && event["ech"] == true
    });
    let page = get("https://forbidden.example/").out();
    assert!(!page.contains("web says hello"), "{page}");
}

/// sniproxy #178, caddy #4017, contour #1493 and others: with one address for all names, an HTTP/2 client sends the
/// requests for one name over the connection of another that has the same certificate.
fn coalescing() {
    let format = ["-sS", "-w", "%{num_connects} %{remote_ip}\n", "-o", "/dev/null"];
    let urls = [
        "--http2",
        "https://web.example/",
        "-o",
        "/dev/null",
        "https://api.example/",
    ];
    let connects = run(world().client.command("curl").args(format).args(urls), 15).ok();
    let expected = ["web.example", "api.example"].map(|name| format!("1 {}\n", resolve(&world().client, ROUTER, name)));
    assert_eq!(connects, expected.concat());
}

fn unlisted() {
    // To the address of an allowed name, with a name that is not allowed.
    let line = "openssl s_client -connect web.example:443 -servername forbidden.example </dev/null 2>&1";
    let refused = run(world().client.command("sh").args(["-c", line]), 15).fails();
    assert!(
        refused.contains("unrecognized name") && refused.contains("alert number 112"),
        "{refused}"
    );
    let address = resolve(&world().client, ROUTER, "web.example");
    let pretend = format!("forbidden.example:443:{address}");
    let curl = ["-sS", "--resolve", &pretend, "https://forbidden.example/"];
    let refused = run(world().client.command("curl").args(curl), 15).fails();
    assert!(refused.contains("unrecognized name"), "{refused}");
    let event = world().router.event("the refusal", |event| {
        event["event"] == "refuse" && event["protocol"] == "tls" && event["name"] == "forbidden.example"
    });
    assert_eq!(event["code"], "name-not-allowed");
    assert_eq!(event["port"], 443);
}

fn missing_name() {
    let line = "openssl s_client -connect web.example:443 -noservername </dev/null 2>&1";
    let refused = run(world().client.command("sh").args(["-c", line]), 15).fails();
    assert!(refused.contains("alert"), "an alert and not a reset: {refused}");
    assert_eq!(world().router.refused("missing-sni", "")["protocol"], "tls");
    // The same by its address: curl sends no name then.
    let address = resolve(&world().client, ROUTER, "web.example");
    let refused = run(
        world()
            .client
            .command("curl")
            .args(["-sSk", &format!("https://{address}/")]),
        15,
    )
    .fails();
    assert!(refused.contains("alert"), "{refused}");
}

/// Sends bytes to a router and reads until it closes.
#[track_caller]
pub(crate) fn send(to: SocketAddr, bytes: &[u8]) -> (Vec<u8>, End) {
    let mut stream = connect(&world().client, to);
    // A router that has seen enough may answer and close before it has everything.
    let _ = stream.write_all(bytes);
    read_to_end(&mut stream)
}

fn refusals() {
    let small = || ClientHello::small("web.example");
    let name = |content: &[u8]| small().with(extension::SERVER_NAME, content.to_vec()).bytes();
    let entry = |name: &str| [&[0], &prefixed(name.as_bytes())[..]].concat();
    let two = prefixed(&[entry("web.example"), entry("api.example")].concat());
    let good = small().message();
    let interleaved = [record(22, &good[..40]), record(21, &[1, 0]), record(22, &good[40..])].concat();
    let mut wrong_length = good.clone();
    // The session id would go beyond the end.
    wrong_length[38] = 250;
    let mut server_hello = good.clone();
    server_hello[0] = 2;
    let trailing = [server_name("web.example"), vec![0]].concat();
    let mut sslv2 = vec![0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10];
    sslv2.extend([0; 0x25]);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("missing-sni", small().without(extension::SERVER_NAME).bytes()),
        ("empty-sni", name(&[])),
        ("empty-sni", name(&[0, 0])),
        ("empty-sni", name(&prefixed(&[0, 0, 0]))),
        (
            "duplicate-sni",
            small().and(extension::SERVER_NAME, server_name("api.example")).bytes(),
        ),
        (
            "duplicate-sni",
            small().and(extension::SERVER_NAME, server_name("web.example")).bytes(),
        ),
        ("duplicate-sni", name(&two)),
        ("malformed-sni", name(&trailing)),
        ("malformed-sni", name(&[0, 4, 0, 0])),
        ("malformed-sni", name(&[0, 20, 0, 0, 3, b'w', b'e', b'b'])),
        ("sni-trailing-dot", name(&server_name("web.example."))),
        ("invalid-name", name(&server_name("web..example"))),
        ("invalid-name", name(&server_name("web.example\0.evil"))),
        ("invalid-name", name(&server_name("*.example"))),
        ("invalid-name", name(&server_name(&"x".repeat(64)))),
        (
            "invalid-name",
            name(&server_name(&format!("{}example", "x.".repeat(124)))),
        ),
        ("invalid-name", name(&server_name(&"x".repeat(60_000)))),
        ("ip-literal", name(&server_name("127.0.0.1"))),
        ("interleaved-record", interleaved),
        ("record-overflow", record(22, &small().padded_to(16_385).message())),
        ("malformed-hello", record(22, &wrong_length)),
        ("malformed-hello", record(22, &server_hello)),
        ("malformed-hello", record(22, &[])),
        ("hello-too-large", [&[22, 3, 1, 0, 4][..], &[1, 1, 0, 1]].concat()),
        ("sslv2", sslv2),
        ("not-tls", b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n".to_vec()),
        ("not-tls", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n".to_vec()),
        ("not-tls", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        ("not-tls", record(23, &good)),
    ];
    for (code, bytes) in cases {
        let shown = &bytes[..bytes.len().min(80)];
        // A router of its own for each: equal refusals in a row are folded.
        let router = world().router("web.example\napi.example\n").start();
        let (answer, end) = send(router.at(443), &bytes);
        assert!(alert(&answer).is_some(), "{code}: answer {answer:?} to {shown:02x?}");
        assert_eq!(end, End::Clean, "{code}: {shown:02x?}");
        let refusal = router.event("a refusal", |event| event["event"] == "refuse");
        assert_eq!(refusal["code"], code, "{shown:02x?}");
        assert_eq!(refusal["protocol"], "tls");
        assert!(!router.events().iter().any(|event| event["event"] == "allow"));
    }
}

fn ip_literals() {
    let router = world().router("web.example\n").start();
    for name in [
        "127.0.0.1",
        "::1",
        "[::1]",
        "1",
        "0x7f.1",
        "017700000001",
        "1.2.3",
        "203.0.113.10",
        "web.127",
    ] {
        let (answer, _) = send(router.at(443), &ClientHello::small(name).bytes());
        assert!(alert(&answer).is_some(), "{name}: {answer:?}");
    }
    router.refused("ip-literal", "");
    assert!(!router.events().iter().any(|event| event["event"] == "allow"));
}

/// gunicorn #3590, netty #6818: closing a socket with unread bytes resets it, and the answer is lost.
fn alert_is_read() {
    let mut bytes = ClientHello::chrome("forbidden.example").bytes();
    bytes.resize(1 << 20, 0x17);
    let mut stream = connect(&world().client, TLS);
    stream.write_all(&bytes).unwrap();
    let (answer, end) = read_to_end(&mut stream);
    assert_eq!((alert(&answer), end), (Some(UNRECOGNIZED_NAME), End::Clean));
}

fn suffix_matching() {
    for name in [
        "evilslot.example",
        "slot.example.evil",
        "xslot.example",
        "x.slot.example.evil",
        "example",
    ] {
        let (answer, _) = send(TLS, &ClientHello::small(name).bytes());
        assert_eq!(alert(&answer), Some(UNRECOGNIZED_NAME), "{name}");
    }
    let slot = world().slot();
    for name in [slot.name.clone(), slot.name.to_uppercase()] {
        assert_passes(&slot, TLS, &ClientHello::small(&name).bytes());
    }
}

/// github/gh-aw-firewall PR #8878: a name was checked that was not the one that counted.
fn name_of_another_address() {
    let slot = world().slot();
    let web = resolve(&world().client, ROUTER, "web.example");
    assert_passes(
        &slot,
        SocketAddr::from((web, 443)),
        &ClientHello::small(&slot.name).bytes(),
    );
    let event = world().router.event("allow", |event| {
        event["event"] == "allow" && event["name"] == slot.name.as_str()
    });
    assert_eq!(event["upstream"], format!("{}:443", slot.address));
}

fn ech() {
    let outer = ClientHello::chrome("cloudflare-ech.com");
    let (answer, _) = send(TLS, &outer.bytes());
    assert_eq!(alert(&answer), Some(UNRECOGNIZED_NAME));
    world().router.refused("name-not-allowed", "cloudflare-ech.com");
    // GREASE cannot be told from the real thing, and goes by the outer name.
    let slot = world().slot();
    assert_passes(&slot, TLS, &ClientHello::chrome(&slot.name).bytes());
    let event = world().router.event("allow", |event| {
        event["event"] == "allow" && event["name"] == slot.name.as_str()
    });
    assert_eq!(event["ech"], true, "{event}");
}

fn unreachable() {
    let (answer, end) = send(TLS, &ClientHello::chrome("closed.example").bytes());
    assert!(
        alert(&answer).is_some_and(|description| description != UNRECOGNIZED_NAME),
        "{answer:?}"
    );
    assert_eq!(end, End::Clean);
    assert_eq!(
        world().router.refused("upstream-unreachable", "closed.example")["protocol"],
        "tls"
    );
}

/// HTTP/3 must fall back at once: an ICMP error and no silence.
fn udp_is_closed() {
    for address in [resolve(&world().client, ROUTER, "web.example"), ROUTER] {
        let socket = world().client.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        socket.connect((address, 443)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.send(&[0xc0; 1200]).unwrap();
        let error = socket.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused,
            "{address}: {error}"
        );
    }
}

/// Sends bytes to `to` and proves that the server at `slot` gets the same bytes, and its answer comes back.
#[track_caller]
fn assert_passes(slot: &Slot, to: SocketAddr, bytes: &[u8]) {
    let listener = slot.listen(443);
    let mut client = connect(&world().client, to);
    client.write_all(bytes).unwrap();
    assert_arrives(&listener, client, bytes);
}

#[track_caller]
fn assert_arrives(listener: &std::net::TcpListener, mut client: TcpStream, bytes: &[u8]) {
    let mut server = accept(listener);
    let mut received = vec![0; bytes.len()];
    server
        .read_exact(&mut received)
        .unwrap_or_else(|error| panic!("the server got less: {error}"));
    assert!(received == bytes, "the bytes were altered on the way");
    server.write_all(b"answer").unwrap();
    drop(server);
    assert_eq!(read_to_end(&mut client), (b"answer".to_vec(), End::Clean));
}

/// Accepts with a time limit.
#[track_caller]
pub(crate) fn accept(listener: &std::net::TcpListener) -> TcpStream {
    SockRef::from(listener).set_read_timeout(Some(LIMIT)).unwrap();
    let (stream, _) = listener
        .accept()
        .unwrap_or_else(|error| panic!("nobody connected: {error}"));
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

type Browser = (&'static str, fn(&str) -> ClientHello);

const BROWSERS: [Browser; 4] = [
    ("chrome", ClientHello::chrome),
    ("firefox", ClientHello::firefox),
    ("safari", ClientHello::safari),
    ("small", ClientHello::small),
];

fn browsers() {
    let slot = world().slot();
    let forwarder = SocketAddr::from((resolve(&world().client, ROUTER, &slot.name), 443));
    for (browser, hello) in BROWSERS {
        let hello = hello(&slot.name).bytes();
        assert!(
            hello.len() > 1500 || !matches!(browser, "chrome" | "firefox"),
            "{browser}: over one MTU"
        );
        assert_passes(&slot, TLS, &hello);
        assert_passes(&slot, forwarder, &hello);
    }
}

/// Every offset of a message, in four threads.
fn at_every_offset(length: usize, step: usize, test: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for lane in 0..4 {
            let test = &test;
            scope.spawn(move || (1 + lane * step..length).step_by(4 * step).for_each(test));
        }
    });
}

/// A hello whose name is not allowed, or is, must be judged the same however it is cut into records.
fn split_records() {
    let slot = world().slot();
    let listener = slot.listen(443);
    let small = ClientHello::small(&slot.name);
    let chrome = ClientHello::chrome(&slot.name);
    let denied = ClientHello::chrome("forbidden.example");
    at_every_offset(denied.message().len(), 1, |at| {
        let (answer, _) = send(TLS, &denied.split_records(at));
        assert_eq!(alert(&answer), Some(UNRECOGNIZED_NAME), "split at {at}");
    });
    for hello in [small, chrome] {
        for at in 1..hello.message().len() {
            let bytes = hello.split_records(at);
            let mut client = connect(&world().client, TLS);
            client.write_all(&bytes).unwrap();
            assert_arrives(&listener, client, &bytes);
        }
    }
}

fn split_segments() {
    let slot = world().slot();
    let listener = slot.listen(443);
    let in_two = |bytes: &[u8], at: usize| {
        let mut client = connect(&world().client, TLS);
        client.write_all(&bytes[..at]).unwrap();
        // Long enough for the router to look at the first part on most tries; the verdict may not depend on it.
        thread::sleep(Duration::from_micros(300));
        client.write_all(&bytes[at..]).unwrap();
        client
    };
    let denied = ClientHello::chrome("forbidden.example").bytes();
    at_every_offset(denied.len(), 1, |at| {
        let (answer, _) = read_to_end(&mut in_two(&denied, at));
        assert_eq!(alert(&answer), Some(UNRECOGNIZED_NAME), "split at {at}");
    });
    let allowed = ClientHello::chrome(&slot.name).bytes();
    for at in 1..allowed.len() {
        assert_arrives(&listener, in_two(&allowed, at), &allowed);
    }
}

fn one_byte_at_a_time() {
    let slot = world().slot();
    let listener = slot.listen(443);
    let bytes = ClientHello::firefox(&slot.name).bytes();
    let mut client = connect(&world().client, TLS);
    for byte in &bytes {
        client.write_all(&[*byte]).unwrap();
        thread::yield_now();
    }
    assert_arrives(&listener, client, &bytes);
}

fn pause_in_the_name() {
    let slot = world().slot();
    let listener = slot.listen(443);
    let bytes = ClientHello::small(&slot.name).bytes();
    let at = bytes.windows(4).position(|window| window == b"slot").unwrap();
    let mut client = connect(&world().client, TLS);
    client.write_all(&bytes[..at]).unwrap();
    thread::sleep(Duration::from_millis(1500));
    client.write_all(&bytes[at..]).unwrap();
    assert_arrives(&listener, client, &bytes);
}

/// Connects with a maximum segment size of 536 (RFC 9293 section 3.7.1): a small MTU somewhere on the way.
pub(crate) fn connect_with_small_segments(to: SocketAddr) -> TcpStream {
    let socket = world().client.enter(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_tcp_mss(536).unwrap();
        socket.connect_timeout(&to.into(), LIMIT).unwrap();
        socket
    });
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

fn large_hellos() {
    let slot = world().slot();
    let listener = slot.listen(443);
    for size in [1800, 9000, 12_000, 16_384, 16_385, 20_000, 63_000, 65_536] {
        // A session ticket as .NET sends them, then the name at the very end.
        let hello = ClientHello::small(&slot.name)
            .without(extension::SERVER_NAME)
            .and(extension::SESSION_TICKET, vec![7; 900]);
        let hello = hello
            .and(extension::SERVER_NAME, server_name(&slot.name))
            .padded_to(size);
        assert_eq!(hello.message().len(), size);
        let bytes = hello.bytes();
        for mut client in [connect(&world().client, TLS), connect_with_small_segments(TLS)] {
            client.write_all(&bytes).unwrap();
            assert_arrives(&listener, client, &bytes);
        }
    }
    // More than 64 KiB needs more than extensions, which end at 65535 bytes.
    let mut too_large = ClientHello::small(&slot.name).and(0xfffe, vec![0; 60_000]);
    too_large.ciphers = vec![0xc02f; 4000];
    let (answer, end) = send(TLS, &too_large.bytes());
    assert!(alert(&answer).is_some(), "{answer:?}");
    assert_eq!(end, End::Clean);
    world().router.refused("hello-too-large", "");
}

fn large_hellos_through_forwarder() {
    let slot = world().slot();
    let listener = slot.listen(443);
    let forwarder = SocketAddr::from((resolve(&world().client, ROUTER, &slot.name), 443));
    for size in [12_000, 20_000, 63_000] {
        let bytes = ClientHello::chrome(&slot.name).padded_to(size).bytes();
        let mut client = connect(&world().client, forwarder);
        client.write_all(&bytes).unwrap();
        assert_arrives(&listener, client, &bytes);
    }
    // And a refusal comes back through both.
    let mut client = connect(&world().client, forwarder);
    let _ = client.write_all(&ClientHello::chrome("forbidden.example").padded_to(63_000).bytes());
    let _ = client.shutdown(Shutdown::Write);
    let (answer, end) = read_to_end(&mut client);
    assert_eq!((alert(&answer), end), (Some(UNRECOGNIZED_NAME), End::Clean));
}

/// A record of one byte each is legal, if odd.
fn many_records() {
    let slot = world().slot();
    let bytes: Vec<u8> = ClientHello::chrome(&slot.name)
        .message()
        .chunks(1)
        .flat_map(|part| record(22, part))
        .collect();
    assert_passes(&slot, TLS, &bytes);
}
