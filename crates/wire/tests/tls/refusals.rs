//! One table per code: what is refused, and at which byte.

use super::hello::{Hello, NAME, handshake, record, records, server_name, vector16};
use super::{name_of, verdict, verdict_in_segments};
use allowlist::Refusal;
use wire::tls::{HelloReader, alert};

fn with_name(name: &[u8]) -> Vec<u8> {
    Hello::chromium(NAME)
        .with_server_name(server_name(&[(0, name)]))
        .bytes()
}

fn with_server_name(data: &[u8]) -> Vec<u8> {
    Hello::openssl(NAME).with_server_name(data.to_vec()).bytes()
}

/// A hello with its body changed, in a message and a record of the right length.
fn with_body(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = Hello::openssl(NAME).body();
    change(&mut body);
    record(22, &handshake(1, &body))
}

fn assert_all(expected: Refusal, cases: &[(&str, Vec<u8>)]) {
    for (case, bytes) in cases {
        assert_eq!(verdict(bytes), Err(expected), "{case}");
        assert_eq!(
            verdict_in_segments(bytes, 0..=bytes.len()).0,
            Err(expected),
            "{case}, byte by byte"
        );
    }
}

#[test]
fn what_is_not_tls_is_refused_at_its_first_bytes() {
    // (what, bytes, the byte that decides)
    let cases: [(&str, &[u8], usize); 8] = [
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n", 1),
        ("ssh", b"SSH-2.0-OpenSSH_9.2\r\n", 1),
        ("PROXY v1", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n", 1),
        ("PROXY v2", b"\r\n\r\n\0\r\nQUIT\n", 1),
        ("an alert first", b"\x15\x03\x01\x00\x02\x02\x28", 1),
        ("application data first", b"\x17\x03\x03\x00\x01\x00", 1),
        ("a record of another protocol", b"\x16\x02\x00\x00\x10", 2),
        ("binary with a high first byte", b"\xff\xff\xff\xff", 3),
    ];
    for (case, bytes, decided) in cases {
        assert_eq!(
            verdict_in_segments(bytes, 0..=bytes.len()),
            (Err(Refusal::NotTls), decided),
            "{case}"
        );
        assert_eq!(verdict(bytes), Err(Refusal::NotTls), "{case}");
    }
}

#[test]
fn sslv2_has_its_own_code() {
    // Length 0x2e, MSG-CLIENT-HELLO, version 3.1, as OpenSSL 0.9.8 sent to servers of any version.
    let compatible = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10";
    assert_eq!(verdict_in_segments(compatible, 0..=11), (Err(Refusal::SslV2), 3));
    assert_eq!(verdict(b"\x80\x1c\x01\x00\x02"), Err(Refusal::SslV2));
}

#[test]
fn records_that_rfc_8446_forbids() {
    let message = Hello::openssl(NAME).message();
    let (first, rest) = message.split_at(60);
    let start = record(22, first);
    let end = record(22, rest);
    let mut other_version = end.clone();
    other_version[1] = 2;
    assert_all(
        Refusal::MalformedHello,
        &[
            (
                "an empty record first",
                [record(22, &[]), start.clone(), end.clone()].concat(),
            ),
            (
                "an empty record between",
                [start.clone(), record(22, &[]), end.clone()].concat(),
            ),
            ("another major version later", [start.clone(), other_version].concat()),
            (
                "another message in the record",
                record(22, &[message.clone(), handshake(11, b"x")].concat()),
            ),
            (
                "one byte behind the message",
                record(22, &[message.clone(), vec![0]].concat()),
            ),
            (
                "one byte behind it in a second record",
                [start.clone(), record(22, &[rest, &[0]].concat())].concat(),
            ),
        ],
    );
    assert_all(
        Refusal::InterleavedRecord,
        &[
            ("an alert", [start.clone(), record(21, &[1, 0]), end.clone()].concat()),
            (
                "change_cipher_spec",
                [start.clone(), record(20, &[1]), end.clone()].concat(),
            ),
            ("application data", [start.clone(), record(23, &[0]), end].concat()),
            ("plain text", [start, b"GET".to_vec()].concat()),
        ],
    );
}

/// tlsfuzzer `test-invalid-client-hello-w-record-overflow`. 2^14 + 256 is the limit of encrypted records only.
#[test]
fn tlsfuzzer_client_hello_record_overflow() {
    let padded = |length| {
        let room = length - Hello::openssl(NAME).padded(0).message().len();
        Hello::openssl(NAME).padded(room).message()
    };
    let full = padded(1 << 14);
    assert_eq!(name_of(&record(22, &full)), NAME);
    let over = record(22, &padded((1 << 14) + 1));
    assert_eq!(
        verdict_in_segments(&over, 0..=over.len()),
        (Err(Refusal::RecordOverflow), 5)
    );
    let second = [records(&full, [100]), vec![22, 3, 3, 0xff, 0xff]].concat();
    assert_all(Refusal::RecordOverflow, &[("the second record", second)]);
}

#[test]
fn messages_that_are_no_client_hello() {
    for kind in (0..=255).filter(|&kind| kind != 1) {
        let bytes = record(22, &handshake(kind, &[0; 50]));
        assert_eq!(
            verdict_in_segments(&bytes, 0..=bytes.len()),
            (Err(Refusal::MalformedHello), 6),
            "type {kind}"
        );
    }
    let mut hello = Hello::openssl(NAME);
    hello.version = 0x7f1c;
    let draft = hello.bytes();
    hello = Hello::openssl(NAME);
    hello.session_id = vec![0; 33];
    let session_id = hello.bytes();
    hello = Hello::openssl(NAME);
    hello.ciphers.clear();
    let no_ciphers = hello.bytes();
    hello = Hello::openssl(NAME);
    hello.compressions.clear();
    let no_compressions = hello.bytes();
    assert_all(
        Refusal::MalformedHello,
        &[
            ("an empty body", record(22, &handshake(1, &[]))),
            ("another legacy_version", draft),
            ("a session id of 33 bytes", session_id),
            ("no cipher suites", no_ciphers),
            ("no compression methods", no_compressions),
            // The length of the cipher suites follows version, random and session id.
            (
                "an odd number of cipher suite bytes",
                with_body(|body| body[2 + 32 + 33 + 1] -= 1),
            ),
            ("a byte behind the extensions", with_body(|body| body.push(0))),
            (
                "a message shorter than its extensions",
                with_body(|body| body.truncate(body.len() - 1)),
            ),
        ],
    );
}

/// No prefix of a hello, given the right length, is good: something is missing in each.
#[test]
fn no_truncated_message_gives_a_name() {
    let body = Hello::openssl(NAME).body();
    for length in 0..body.len() {
        let result = verdict(&record(22, &handshake(1, &body[..length])));
        let expected = match length {
            // Exactly up to the extensions: what TLS 1.0 clients without extensions send.
            85 => Refusal::MissingSni,
            _ => Refusal::MalformedHello,
        };
        assert_eq!(result, Err(expected), "{length} bytes");
    }
}

#[test]
fn extensions_that_are_broken_or_twice_there() {
    // tls-parser's list ends at the first one it cannot read: before the name it hides it, behind it nobody notices.
    let lists = |list: &[u8]| {
        let mut hello = Hello::openssl(NAME);
        hello.extensions = None;
        record(22, &handshake(1, &[hello.body(), vector16(list)].concat()))
    };
    let sni = [&[0, 0][..], &vector16(&server_name(&[(0, NAME.as_bytes())]))].concat();
    assert_eq!(name_of(&lists(&sni)), NAME);
    assert_all(
        Refusal::MalformedHello,
        &[
            (
                "half an extension header behind the name",
                lists(&[&sni[..], &[0, 23, 0]].concat()),
            ),
            (
                "an extension longer than the list",
                lists(&[&sni[..], &[0, 23, 0, 1]].concat()),
            ),
            (
                "one before the name that takes all",
                lists(&[&[0, 23, 0xff, 0xff][..], &sni].concat()),
            ),
            (
                "two of the same type",
                lists(&[&sni[..], &[0, 23, 0, 0], &[0, 23, 0, 0]].concat()),
            ),
            (
                "two GREASE of the same value",
                lists(&[&sni[..], &[0x2a, 0x2a, 0, 0], &[0x2a, 0x2a, 0, 0]].concat()),
            ),
        ],
    );
    let other = [&[0, 0][..], &vector16(&server_name(&[(0, b"example.com")]))].concat();
    assert_all(
        Refusal::DuplicateSni,
        &[
            ("two names", lists(&[&sni[..], &other].concat())),
            ("the same name twice", lists(&[&sni[..], &sni].concat())),
            ("apart", lists(&[&sni[..], &[0, 23, 0, 0], &other].concat())),
            ("an empty one second", lists(&[&sni[..], &[0, 0, 0, 0]].concat())),
            ("an empty one first", lists(&[&[0, 0, 0, 0], &sni[..]].concat())),
        ],
    );
    // Each extension once, of 60 KiB of them: neither slow nor refused.
    let many: Vec<u8> = (100..15_000u16)
        .flat_map(|kind| [kind.to_be_bytes(), [0, 0]].concat())
        .collect();
    let mut hello = Hello::openssl(NAME);
    hello.extensions = None;
    let message = handshake(1, &[hello.body(), vector16(&[&sni[..], &many].concat())].concat());
    assert_eq!(name_of(&records(&message, [16_000, 16_000, 16_000, 16_000])), NAME);
}

#[test]
fn no_name_at_all() {
    let mut without_extensions = Hello::openssl(NAME);
    without_extensions.extensions = None;
    let mut empty_list = Hello::openssl(NAME);
    empty_list.extensions_mut().clear();
    assert_all(
        Refusal::MissingSni,
        &[
            ("no server_name", Hello::chromium(NAME).without_server_name().bytes()),
            ("no extensions", without_extensions.bytes()),
            ("an empty list of extensions", empty_list.bytes()),
        ],
    );
    assert_all(
        Refusal::EmptySni,
        &[
            ("an empty extension", with_server_name(&[])),
            ("an empty list", with_server_name(&[0, 0])),
            ("an empty name", with_name(b"")),
        ],
    );
}

/// tlsfuzzer `test-invalid-server-name-extension`.
#[test]
fn tlsfuzzer_invalid_server_name_lists() {
    let good = server_name(&[(0, NAME.as_bytes())]);
    let changed = |at: usize, byte: u8| {
        let mut data = good.clone();
        data[at] = byte;
        with_server_name(&data)
    };
    assert_all(
        Refusal::MalformedSni,
        &[
            ("a list longer than the extension", changed(1, good[1] + 1)),
            ("a list shorter than its entry", changed(1, good[1] - 1)),
            ("a name longer than the list", changed(4, good[4] + 1)),
            ("a name shorter than the list", changed(4, good[4] - 1)),
            ("another name type", changed(2, 1)),
            ("a byte behind the list", with_server_name(&[&good[..], &[0]].concat())),
            ("one byte", with_server_name(&[0])),
            ("half a list", with_server_name(&good[..10])),
            (
                "a name of another type first",
                with_server_name(&server_name(&[(9, b"x"), (0, NAME.as_bytes())])),
            ),
            (
                "a name of another type second",
                with_server_name(&server_name(&[(0, NAME.as_bytes()), (9, b"x")])),
            ),
        ],
    );
    let twice = server_name(&[(0, NAME.as_bytes()), (0, b"example.com")]);
    assert_all(
        Refusal::DuplicateSni,
        &[("two names in one list", with_server_name(&twice))],
    );
}

/// sniproxy #142 crashed on an address; CVE-2023-25076 was an overflow by a long name; smokescreen CVE-2022-24825 let a
/// trailing dot round a list.
#[test]
fn sniproxy_142_cve_2023_25076_smokescreen_cve_2022_24825_names() {
    let all = |expected, names: &[&[u8]]| {
        for name in names {
            let case = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
            assert_all(expected, &[(&case, with_name(name))]);
        }
    };
    all(
        Refusal::IpLiteral,
        &[
            b"127.0.0.1",
            b"[::1]",
            b"::1",
            b"1",
            b"0x7f.1",
            b"017700000001",
            b"1.2.3",
            b"example.0x",
        ],
    );
    all(
        Refusal::SniTrailingDot,
        &[b"api.anthropic.com.", b"api.anthropic.com..", b"a."],
    );
    let long_label = [&[b'a'; 64][..], b".com"].concat();
    let long = |length| {
        let mut name = b"abcdefg.".repeat(length / 8 + 1);
        name.truncate(length);
        name[length - 1] = b'a';
        name
    };
    all(
        Refusal::InvalidName,
        &[
            b".example.com",
            b"a..b",
            b".",
            b"-a.com",
            b"a-.com",
            b"api.anthropic.com\0.example.com",
            b"api.anthropic.com\n",
            b"*.example.com",
            b"user@example.com",
            b"https//example.com",
            "b\u{fc}cher.example".as_bytes(),
            &long_label,
            &long(254),
            &long(255),
            &long(256),
            &long(14_000),
        ],
    );
    assert_eq!(name_of(&with_name(&long(253))).len(), 253);
}

/// inetaf/tcpproxy #3, traefik #4132: names were compared with their case.
#[test]
fn tcpproxy_3_upper_case_is_the_same_name() {
    assert_eq!(name_of(&with_name(b"API.GitHub.com")), "api.github.com");
}

/// net4people/bbs #393: with ECH the name outside is the one that routes, and the caller is told.
#[test]
fn net4people_393_ech_is_routed_by_the_outer_name() {
    let hello = verdict(&Hello::chromium("cloudflare-ech.com").bytes());
    let hello = hello.expect("refused").expect("incomplete");
    assert_eq!((hello.name.as_str(), hello.ech), ("cloudflare-ech.com", true));
    let hello = verdict(&Hello::openssl(NAME).bytes());
    assert!(!hello.expect("refused").expect("incomplete").ech);
}

#[test]
fn the_client_is_told_by_a_fatal_alert() {
    let cases = [
        (Refusal::NameNotAllowed, 112),
        (Refusal::PortNotAllowed, 112),
        (Refusal::MissingSni, 109),
        (Refusal::EmptySni, 50),
        (Refusal::MalformedSni, 50),
        (Refusal::MalformedHello, 50),
        (Refusal::HelloTooLarge, 50),
        (Refusal::DuplicateSni, 47),
        (Refusal::SniTrailingDot, 47),
        (Refusal::IpLiteral, 47),
        (Refusal::InvalidName, 47),
        (Refusal::NotTls, 10),
        (Refusal::InterleavedRecord, 10),
        (Refusal::SslV2, 70),
        (Refusal::RecordOverflow, 22),
        (Refusal::AddressDenied, 49),
        (Refusal::UpstreamUnreachable, 80),
        (Refusal::ResolveFailed, 80),
    ];
    for (refusal, description) in cases {
        assert_eq!(alert(refusal), [21, 3, 3, 0, 2, 2, description], "{refusal:?}");
    }
    // A client that reads it as TLS: no reader of ours takes it for a hello.
    assert_eq!(
        HelloReader::new().advance(&alert(Refusal::NotTls)),
        Err(Refusal::NotTls)
    );
}
