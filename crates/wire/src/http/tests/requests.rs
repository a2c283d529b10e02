use allowlist::Refusal;

use super::super::{BodyLength, MAX_FIELDS, Method, parse_request};
use super::{get, post, request};

fn refusal(bytes: impl AsRef<[u8]>) -> Refusal {
    let bytes = bytes.as_ref();
    match request(bytes) {
        Err(refusal) => refusal,
        Ok(head) => panic!("not refused: {} gave {head:?}", bytes.escape_ascii()),
    }
}

fn accepted(bytes: impl AsRef<[u8]>) -> super::RequestHead {
    let bytes = bytes.as_ref();
    request(bytes).unwrap_or_else(|refusal| panic!("{refusal:?}: {}", bytes.escape_ascii()))
}

/// As real programs send them.
#[test]
fn real_requests() {
    let curl = "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";
    let head = accepted(curl);
    assert_eq!(head.host.as_str(), "example.com");
    assert_eq!(
        (head.method, head.body, head.upgrade, head.close),
        (Method::Other, BodyLength::None, false, false)
    );

    let apt = "GET /debian/dists/bookworm/InRelease HTTP/1.1\r\nHost: deb.example.org\r\nUser-Agent: Debian APT-HTTP/1.3 \
               (2.6.1)\r\nAccept: text/*\r\nIf-Modified-Since: Sat, 11 Jan 2025 10:11:12 GMT\r\n\r\n";
    assert_eq!(accepted(apt).host.as_str(), "deb.example.org");

    let wget = "HEAD / HTTP/1.1\r\nHost: example.com\r\nConnection: Keep-Alive\r\n\r\n";
    assert_eq!(accepted(wget).method, Method::Head);

    let node = "POST /ocsp HTTP/1.1\r\nhost: example.com:80\r\nconnection: close\r\ncontent-length: 83\r\n\r\n";
    let head = accepted(node);
    assert_eq!((head.body, head.close), (BodyLength::Length(83), true));

    let fetch = "POST / HTTP/1.1\r\nhost: example.com\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(accepted(fetch).body, BodyLength::Chunked);

    let busybox = "GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: Wget\r\nConnection: close\r\n\r\n";
    assert!(accepted(busybox).close);

    let ab = "GET / HTTP/1.0\r\nHost: example.com\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";
    assert!(accepted(ab).close);

    let websocket = "GET /chat HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let head = accepted(websocket);
    assert!(head.upgrade && !head.close);

    let options = "OPTIONS * HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(accepted(options).body, BodyLength::Length(0));

    let raw_utf8 =
        "GET /gr\u{fc}n//\u{2713}?a=[1]|\"<> HTTP/1.1\r\nHost: example.com\r\nX-Empty:\r\nX-Latin: \u{e9}\r\n\r\n";
    assert_eq!(accepted(raw_utf8).host.as_str(), "example.com");
}

#[test]
fn the_host_is_one_valid_name() {
    for (host, name) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("example.com:80", "example.com"),
        ("example.com.", "example.com"),
        ("example.com.:80", "example.com"),
        ("a_b.example", "a_b.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("  example.com", "example.com"),
        ("localhost", "localhost"),
    ] {
        assert_eq!(
            accepted(get(&format!("Host: {host}\r\n"))).host.as_str(),
            name,
            "{host:?}"
        );
    }
    assert_eq!(accepted(get("hOsT:example.com\r\n")).host.as_str(), "example.com");

    let long_label = format!("{}.example", "a".repeat(64));
    let long_name = format!("{}example", "a.".repeat(124));
    for (host, expected) in [
        ("", Refusal::InvalidHost),
        (".", Refusal::InvalidHost),
        (":80", Refusal::InvalidHost),
        ("example.com..", Refusal::InvalidHost),
        (".example.com", Refusal::InvalidHost),
        ("a..b", Refusal::InvalidHost),
        ("-a.example", Refusal::InvalidHost),
        ("example.com:", Refusal::InvalidHost),
        ("example.com:443", Refusal::InvalidHost),
        ("example.com:8080", Refusal::InvalidHost),
        ("example.com:080", Refusal::InvalidHost),
        ("example.com:+80", Refusal::InvalidHost),
        ("example.com:80:80", Refusal::InvalidHost),
        ("example.com:80 ", Refusal::InvalidHost),
        ("example.com ", Refusal::InvalidHost),
        ("example.com\t", Refusal::InvalidHost),
        ("\texample.com", Refusal::InvalidHost),
        ("example.com, other.example", Refusal::InvalidHost),
        ("example.com other.example", Refusal::InvalidHost),
        ("user@example.com", Refusal::InvalidHost),
        ("user:pass@example.com", Refusal::InvalidHost),
        ("example.com@other.example:80", Refusal::InvalidHost),
        ("example.com/", Refusal::InvalidHost),
        ("example.com#", Refusal::InvalidHost),
        ("example.com\\other.example", Refusal::InvalidHost),
        ("http://example.com", Refusal::InvalidHost),
        ("ex%61mple.com", Refusal::InvalidHost),
        ("*.example.com", Refusal::InvalidHost),
        ("b\u{fc}cher.example", Refusal::InvalidHost),
        ("example.com]", Refusal::InvalidHost),
        (&long_label, Refusal::InvalidHost),
        (&long_name, Refusal::InvalidHost),
        ("127.0.0.1", Refusal::IpLiteral),
        ("127.0.0.1:80", Refusal::IpLiteral),
        ("127.0.0.1.", Refusal::IpLiteral),
        ("127.1", Refusal::IpLiteral),
        ("2130706433", Refusal::IpLiteral),
        ("0x7f.1", Refusal::IpLiteral),
        ("017700000001", Refusal::IpLiteral),
        ("example.1", Refusal::IpLiteral),
        ("169.254.169.254", Refusal::IpLiteral),
        ("[::1]", Refusal::IpLiteral),
        ("[::1]:80", Refusal::IpLiteral),
        ("[::ffff:127.0.0.1]", Refusal::IpLiteral),
        ("[example.com]", Refusal::IpLiteral),
        ("::1", Refusal::IpLiteral),
        ("fd00:ec2::254", Refusal::IpLiteral),
    ] {
        assert_eq!(refusal(get(&format!("Host: {host}\r\n"))), expected, "{host:?}");
    }
}

#[test]
fn no_host_or_two() {
    assert_eq!(refusal("GET / HTTP/1.1\r\n\r\n"), Refusal::MissingHost);
    assert_eq!(refusal("GET / HTTP/1.0\r\n\r\n"), Refusal::MissingHost);
    assert_eq!(
        refusal(get("X-Host: example.com\r\nHosts: a\r\n")),
        Refusal::MissingHost
    );
    // A target that names a host does not stand in for the field.
    assert_eq!(
        refusal("GET http://example.com/ HTTP/1.1\r\n\r\n"),
        Refusal::MissingHost
    );
    for second in [
        "Host: example.com",
        "host: other.example",
        "HOST:",
        "Host: a\r\nHost: b",
    ] {
        let head = get(&format!("Host: example.com\r\nA: b\r\n{second}\r\n"));
        assert_eq!(refusal(head), Refusal::DuplicateHost, "{second}");
    }
}

#[test]
fn targets() {
    for target in [
        "/",
        "//other.example/",
        "/http://other.example/",
        "/?@other.example",
        "http://example.com",
        "http://example.com/",
        "HTTP://EXAMPLE.com/a",
        "http://example.com?q",
        "http://example.com:80/",
        "http://example.com./",
        "http://example.com/@other.example",
    ] {
        let head = accepted(format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n\r\n"));
        assert_eq!(head.host.as_str(), "example.com", "{target}");
    }
    for (target, expected) in [
        ("http://other.example/", Refusal::HostMismatch),
        ("http://example.com.other.example/", Refusal::HostMismatch),
        ("http://www.example.com/", Refusal::HostMismatch),
        ("http://example.com:8080/", Refusal::InvalidHost),
        ("http://example.com:/", Refusal::InvalidHost),
        ("http://user@example.com/", Refusal::InvalidHost),
        ("http://example.com@other.example/", Refusal::InvalidHost),
        ("http://example.com\\@other.example/", Refusal::InvalidHost),
        ("http://other.example\\/", Refusal::InvalidHost),
        ("http:///", Refusal::InvalidHost),
        ("http://", Refusal::InvalidHost),
        ("http://127.0.0.1/", Refusal::IpLiteral),
        ("http://[::1]/", Refusal::IpLiteral),
        ("http://example.com#@other.example/", Refusal::MalformedRequest),
        ("https://example.com/", Refusal::MalformedRequest),
        ("ftp://example.com/", Refusal::MalformedRequest),
        ("http:/example.com/", Refusal::MalformedRequest),
        ("http:example.com", Refusal::MalformedRequest),
        ("example.com:80", Refusal::MalformedRequest),
        ("example.com", Refusal::MalformedRequest),
        ("*", Refusal::MalformedRequest),
        ("?q", Refusal::MalformedRequest),
        ("../", Refusal::MalformedRequest),
        ("\\", Refusal::MalformedRequest),
        ("", Refusal::MalformedRequest),
        (" /", Refusal::MalformedRequest),
        ("/a b", Refusal::MalformedRequest),
        ("/ HTTP/1.1", Refusal::MalformedRequest),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n\r\n");
        assert_eq!(refusal(head), expected, "{target:?}");
    }
    assert_eq!(
        refusal("OPTIONS ** HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        Refusal::MalformedRequest
    );
    assert_eq!(
        refusal("OPTIONS a.example HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        Refusal::MalformedRequest
    );
    let not_utf8 = b"GET /\xff HTTP/1.1\r\nHost: a.example\r\n\r\n";
    assert_eq!(refusal(not_utf8), Refusal::MalformedRequest);
}

#[test]
fn methods_that_change_the_framing() {
    for head in [
        "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
        "CONNECT example.com:443 HTTP/1.0\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "connect example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
    ] {
        assert_eq!(refusal(head), Refusal::ConnectMethod, "{head}");
    }
    assert_eq!(
        refusal("head / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        Refusal::MalformedRequest
    );
    assert_eq!(
        accepted("PROPFIND / HTTP/1.1\r\nHost: example.com\r\n\r\n").method,
        Method::Other
    );
}

/// What llhttp takes only with its lenient flags.
#[test]
fn llhttp_lenient_flags() {
    for fields in [
        "Host : example.com\r\n",
        "Host\t: example.com\r\n",
        "Host: example.com\r\nA : b\r\n",
        "Host: example.com\r\nA\r\n",
        "Host: example.com\r\nA b: c\r\n",
        "Host: example.com\r\nA(: c\r\n",
        "Host: example.com\r\n\u{e9}: c\r\n",
        "Host: example.com\r\nA: b\r\n c\r\n",
        "Host: example.com\nA: b\r\n",
        "Host: example.com\rA: b\r\n",
        "Host: example.com\r\nA: \x01\r\n",
        "Host: example.com\r\nA: \0\r\n",
    ] {
        assert_eq!(refusal(get(fields)), Refusal::MalformedRequest, "{fields:?}");
    }
    assert_eq!(
        refusal("GET / HTTP/1.1\r\nHost: a.example\r\n\n"),
        Refusal::MalformedRequest
    );
    assert_eq!(
        refusal("GET / HTTP/1.1\r\nHost: a.example\n\n"),
        Refusal::MalformedRequest
    );
    assert_eq!(
        refusal("GET  / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        Refusal::MalformedRequest
    );
    assert_eq!(
        refusal("GET /  HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        Refusal::MalformedRequest
    );
    assert_eq!(
        refusal("G@T / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        Refusal::MalformedRequest
    );
}

#[test]
fn one_valid_content_length() {
    for (value, length) in [("0", 0), ("5", 5), ("  5", 5), ("9223372036854775807", i64::MAX as u64)] {
        let head = accepted(post(&format!("Content-Length: {value}\r\n")));
        assert_eq!(head.body, BodyLength::Length(length), "{value:?}");
    }
    for value in [
        "",
        "+5",
        "-5",
        "5,",
        "5, 5",
        "5 5",
        "0x5",
        "5.0",
        "05",
        "00",
        "5;",
        "a",
        "5 ",
        "5\t",
        "\t5",
        "\u{665}",
        "9223372036854775808",
        "18446744073709551616",
        "99999999999999999999999999",
    ] {
        let head = post(&format!("Content-Length: {value}\r\n"));
        assert_eq!(refusal(head), Refusal::AmbiguousFraming, "{value:?}");
    }
    for fields in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\ncontent-length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 5\r\n",
        "Content_Length: 5\r\n",
        "Content_Length: 5\r\nContent-Length: 5\r\n",
        "Transfer_Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer_Encoding: chunked\r\n",
    ] {
        assert_eq!(refusal(post(fields)), Refusal::AmbiguousFraming, "{fields:?}");
    }
}

/// The spellings with which smuggling tools hide a Transfer-Encoding from one of two servers.
#[test]
fn transfer_encoding_is_exactly_chunked() {
    for value in ["chunked", "Chunked", "CHUNKED", "   chunked"] {
        assert_eq!(
            accepted(post(&format!("Transfer-Encoding: {value}\r\n"))).body,
            BodyLength::Chunked,
            "{value:?}"
        );
    }
    for fields in [
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: 'chunked'\r\n",
        "Transfer-Encoding:\tchunked\r\n",
        "Transfer-Encoding: chunked \r\n",
        "Transfer-Encoding: chunked\t\r\n",
        "Transfer-Encoding: \u{a0}chunked\r\n",
        "Transfer-Encoding: chun\u{212a}ed\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert_eq!(
            refusal(post(fields)),
            Refusal::UnsupportedTransferEncoding,
            "{fields:?}"
        );
    }
    for fields in [
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding\r\n : chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: chunked\x0c\r\n",
        "Transfer-Encoding: \x08chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "X: y\r\n\rTransfer-Encoding: chunked\r\n",
        "\0Transfer-Encoding: chunked\r\n",
    ] {
        assert_eq!(refusal(post(fields)), Refusal::MalformedRequest, "{fields:?}");
    }
    // Another field altogether, for us as for everybody.
    assert_eq!(
        accepted(post("X-Transfer-Encoding: chunked\r\n")).body,
        BodyLength::None
    );
}

#[test]
fn rustsec_2026_0034_transfer_encoding_on_http_1_0() {
    let head = "POST / HTTP/1.0\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refusal(head), Refusal::UnsupportedTransferEncoding);
    let head = "POST / HTTP/1.0\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(refusal(head), Refusal::AmbiguousFraming);
}

#[test]
fn http2_without_tls() {
    for fields in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAA\r\n",
        "Upgrade: h2c\r\n",
        "upgrade: H2C\r\n",
        "Upgrade: websocket, h2c\r\n",
        "Upgrade: websocket\r\nUpgrade: h2c\r\n",
        "Upgrade: websocket,\th2c\t, foo\r\n",
        "Upgrade: h2c/1\r\n",
        "Upgrade: h2c-14\r\n",
        "Upgrade: h2\r\n",
        "Upgrade: HTTP/2.0\r\n",
        "HTTP2-Settings: AAMAAABkAARAAAAA\r\n",
        "http2-settings:\r\n",
    ] {
        assert_eq!(refusal(post(fields)), Refusal::CleartextHttp2, "{fields:?}");
    }
    assert_eq!(refusal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Refusal::CleartextHttp2);
}

#[test]
fn upgrade_needs_both_fields_and_http_1_1() {
    let both = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    assert!(accepted(post(both)).upgrade);
    assert!(
        accepted(post(
            "Connection: keep-alive\r\nConnection: uPgrade\r\nUpgrade: x/1, y\r\n"
        ))
        .upgrade
    );
    assert!(!accepted(post("Upgrade: websocket\r\n")).upgrade);
    assert!(!accepted(post("Connection: upgrade\r\n")).upgrade);
    assert!(!accepted(format!("GET / HTTP/1.0\r\nHost: example.com\r\n{both}\r\n")).upgrade);
}

#[test]
fn when_the_connection_ends() {
    let connection = |version: &str, value: &str| {
        accepted(format!(
            "GET / HTTP/{version}\r\nHost: example.com\r\nConnection: {value}\r\n\r\n"
        ))
        .close
    };
    assert!(!connection("1.1", "keep-alive"));
    assert!(!connection("1.1", ""));
    assert!(!connection("1.1", "x-close, TE"));
    assert!(connection("1.1", "Close"));
    assert!(connection("1.1", "keep-alive, close"));
    assert!(connection("1.1", "close\r\nConnection: keep-alive"));
    assert!(connection("1.0", "TE"));
    assert!(connection("1.0", "keep-alive, close"));
    assert!(!connection("1.0", "Keep-Alive"));
}

#[test]
fn connection_must_not_name_what_was_decided_by() {
    for value in [
        "Host",
        "close, host",
        "Content-Length",
        "transfer-encoding",
        "transfer_encoding",
        "a b",
        "\"close\"",
    ] {
        assert_eq!(
            refusal(post(&format!("Connection: {value}\r\n"))),
            Refusal::MalformedRequest,
            "{value}"
        );
    }
}

#[test]
fn at_most_100_fields() {
    let fields = |count: usize| get(&format!("Host: example.com\r\n{}", "A: b\r\n".repeat(count - 1)));
    assert_eq!(accepted(fields(MAX_FIELDS)).host.as_str(), "example.com");
    assert_eq!(refusal(fields(MAX_FIELDS + 1)), Refusal::HeadTooLarge);
}

/// The parser does not trust its caller to have asked the reader.
#[test]
fn a_head_and_nothing_else() {
    let head = get("Host: example.com\r\n");
    assert!(parse_request(&head).is_ok());
    assert_eq!(
        parse_request(&[head.as_slice(), b"x"].concat()),
        Err(Refusal::MalformedRequest)
    );
    for end in 0..head.len() {
        assert_eq!(parse_request(&head[..end]), Err(Refusal::MalformedRequest), "{end}");
    }
    assert_eq!(
        parse_request(b"GET / HTTP/1.1\nHost: example.com\n\n"),
        Err(Refusal::MalformedRequest)
    );
}
