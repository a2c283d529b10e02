use allowlist::Refusal;

use super::super::{BodyLength, MAX_FIELDS, Method, parse_response};
use super::{post, request, response};

/// A response on HTTP/1.1 with these lines for fields.
fn answer(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}\r\n")
}

#[test]
fn how_long_a_body_is() {
    let cases = [
        ("200 OK", "Content-Length: 5\r\n", BodyLength::Length(5), false),
        ("200 OK", "Content-Length: 0\r\n", BodyLength::Length(0), false),
        ("200 OK", "Content-Length:   5  \r\n", BodyLength::Length(5), false),
        ("200", "Content-Length: 5\r\n", BodyLength::Length(5), false),
        ("200 ", "Content-Length: 5\r\n", BodyLength::Length(5), false),
        (
            "404 Not Found",
            "content-length: 5\r\nConnection: close\r\n",
            BodyLength::Length(5),
            true,
        ),
        ("999 Denied", "Content-Length: 5\r\n", BodyLength::Length(5), false),
        ("200 OK", "Transfer-Encoding: chunked\r\n", BodyLength::Chunked, false),
        (
            "200 OK",
            "Transfer-Encoding: gzip, Chunked\r\n",
            BodyLength::Chunked,
            false,
        ),
        (
            "200 OK",
            "Transfer-Encoding: gzip\r\ntransfer-encoding: chunked\r\n",
            BodyLength::Chunked,
            false,
        ),
        // As Akamai sends it.
        (
            "200 OK",
            "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding\r\n",
            BodyLength::Chunked,
            false,
        ),
        ("200 OK", "Transfer-Encoding: gzip\r\n", BodyLength::UntilClose, true),
        ("200 OK", "", BodyLength::UntilClose, true),
        ("200 OK", "Connection: keep-alive\r\n", BodyLength::UntilClose, true),
        ("204 No Content", "", BodyLength::None, false),
        ("204 No Content", "Content-Length: 0\r\n", BodyLength::None, false),
        ("304 Not Modified", "Content-Length: 5\r\n", BodyLength::None, false),
        ("100 Continue", "", BodyLength::None, false),
        ("103 Early Hints", "Link: </a>\r\n", BodyLength::None, false),
        (
            "101 Switching Protocols",
            "Upgrade: websocket\r\nConnection: Upgrade\r\n",
            BodyLength::None,
            false,
        ),
    ];
    for (status, fields, body, close) in cases {
        let head = response(answer(status, fields), Method::Other).unwrap_or_else(|_| panic!("{status} {fields}"));
        assert_eq!((head.body, head.close), (body, close), "{status} {fields}");
        let to_head = response(answer(status, fields), Method::Head).unwrap_or_else(|_| panic!("{status} {fields}"));
        assert_eq!(to_head.body, BodyLength::None, "{status} {fields}");
    }
}

#[test]
fn http_1_0_ends_unless_kept_alive() {
    let ends = |fields: &str| {
        let head = response(
            format!("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n{fields}\r\n"),
            Method::Other,
        );
        head.unwrap_or_else(|_| panic!("{fields}")).close
    };
    assert!(ends(""));
    assert!(ends("Connection: close\r\n"));
    assert!(!ends("Connection: Keep-Alive\r\n"));
}

#[test]
fn what_cannot_be_framed_or_is_not_http() {
    for head in [
        answer("200 OK", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        answer("200 OK", "Content-Length: 5\r\nContent-Length: 5\r\n"),
        answer("200 OK", "Content-Length: 5\r\nContent-Length: 6\r\n"),
        answer("200 OK", "Content-Length: 5, 5\r\n"),
        answer("200 OK", "Content-Length: +5\r\n"),
        answer("200 OK", "Content-Length: -1\r\n"),
        answer("200 OK", "Content-Length:\r\n"),
        answer("200 OK", "Content-Length: 9223372036854775808\r\n"),
        answer("200 OK", "Transfer-Encoding: chunked, gzip\r\n"),
        answer("200 OK", "Transfer-Encoding: chunked, chunked\r\n"),
        answer(
            "200 OK",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        ),
        answer("200 OK", "Transfer-Encoding:\r\n"),
        answer("200 OK", "Transfer-Encoding: chunked,\r\n"),
        answer("200 OK", "A : b\r\n"),
        answer("200 OK", "A: b\r\n c\r\n"),
        answer("200 OK", "A: b\n"),
        answer("200 OK", "A: \0\r\n"),
        answer("200 OK", "no colon\r\n"),
        answer("099 Low", ""),
        answer("20 OK", ""),
        answer("2000 OK", ""),
        answer("2x0 OK", ""),
        answer("200 OK", &"A: b\r\n".repeat(MAX_FIELDS + 1)),
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        "HTTP/1.2 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1  200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1\r\n\r\n".to_owned(),
        "HTTP/2 200\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\n\n".to_owned(),
    ] {
        for method in [Method::Other, Method::Head] {
            assert_eq!(response(&head, method), Err(Refusal::MalformedResponse), "{head:?}");
        }
    }
    let head = answer("200 OK", "Content-Length: 5\r\n");
    for end in 0..head.len() {
        assert_eq!(
            parse_response(&head.as_bytes()[..end], Method::Other),
            Err(Refusal::MalformedResponse)
        );
    }
    assert!(parse_response(format!("{head}x").as_bytes(), Method::Other).is_err());
}

/// Raw mode begins with the upstream's own 101 to a request that offered it; a 200 leaves the connection HTTP, so that
/// the next bytes of the client are a request to be checked.
#[test]
fn rustsec_2026_0033_raw_mode_only_after_101() {
    let offer = request(post("Upgrade: x\r\nConnection: upgrade\r\n")).unwrap();
    let plain = request(post("")).unwrap();
    let switched = response(answer("101 Switching Protocols", ""), Method::Other).unwrap();
    assert!(switched.switches_protocols(&offer) && !switched.is_interim());
    assert!(!switched.switches_protocols(&plain));
    for status in ["200 OK", "100 Continue", "102 Processing", "426 Upgrade Required"] {
        let head = response(
            answer(status, "Upgrade: x\r\nConnection: upgrade\r\nContent-Length: 0\r\n"),
            Method::Other,
        );
        assert!(!head.unwrap().switches_protocols(&offer), "{status}");
    }
}

#[test]
fn after_an_interim_response_another_follows() {
    for (status, interim) in [
        ("100 Continue", true),
        ("103 Early Hints", true),
        ("101 x", false),
        ("200 OK", false),
    ] {
        assert_eq!(
            response(answer(status, ""), Method::Other).unwrap().is_interim(),
            interim,
            "{status}"
        );
    }
}
