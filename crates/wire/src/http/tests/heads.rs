use allowlist::Refusal;

use super::super::{HeadReader, MAX_HEAD};

const HEAD: &[u8] = b"GET /a HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n";

/// The verdict, and how many bytes it took when they came one by one.
fn bytewise(mut reader: HeadReader, bytes: &[u8]) -> (Result<Option<usize>, Refusal>, usize) {
    for end in 0..=bytes.len() {
        match reader.advance(&bytes[..end]) {
            Ok(None) => {}
            verdict => return (verdict, end),
        }
    }
    (Ok(None), bytes.len())
}

#[test]
fn the_end_is_found_and_what_follows_is_left_alone() {
    let pipelined = [HEAD, b"\0\0anything"].concat();
    assert_eq!(HeadReader::new().advance(&pipelined), Ok(Some(HEAD.len())));
    assert_eq!(
        bytewise(HeadReader::new(), &pipelined),
        (Ok(Some(HEAD.len())), HEAD.len())
    );
    let mut reader = HeadReader::new();
    assert_eq!(reader.advance(HEAD), Ok(Some(HEAD.len())));
    assert_eq!(reader.advance(&pipelined), Ok(Some(HEAD.len())), "asked again");
}

#[test]
fn nothing_is_decided_before_the_last_byte() {
    for end in 0..HEAD.len() {
        assert_eq!(HeadReader::new().advance(&HEAD[..end]), Ok(None), "{end} bytes");
    }
}

/// Refused at the byte that shows it: `at` counts it.
#[test]
fn what_cannot_be_a_head_is_refused_at_once() {
    let cases: &[(&[u8], Refusal, usize)] = &[
        (b"\x16\x03\x01\x02\x00", Refusal::MalformedRequest, 1), // TLS
        (b"\x80\x2e\x01", Refusal::MalformedRequest, 1),         // SSLv2
        (b"\r\nGET / HTTP/1.1\r\n", Refusal::MalformedRequest, 1),
        (b"\nGET / HTTP/1.1\r\n", Refusal::MalformedRequest, 1),
        (b" GET / HTTP/1.1\r\n", Refusal::MalformedRequest, 1),
        (b"\0", Refusal::MalformedRequest, 1),
        (b"\xef\xbb\xbfGET / HTTP/1.1\r\n", Refusal::MalformedRequest, 1),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refusal::CleartextHttp2, 4),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Refusal::MalformedRequest, 20),
        (b"GET\t/ HTTP/1.1\r\n", Refusal::MalformedRequest, 4),
        (b"GET /\tHTTP/1.1\r\n", Refusal::MalformedRequest, 6),
        (b"GET /\0 HTTP/1.1\r\n", Refusal::MalformedRequest, 6),
        (b"GET /\x7f HTTP/1.1\r\n", Refusal::MalformedRequest, 6),
        (b"GET /\r\n", Refusal::MalformedRequest, 6), // HTTP/0.9
        (b"GET / HTTP/1.2\r\n", Refusal::MalformedRequest, 15),
        (b"GET / HTTP/2.0\r\n", Refusal::MalformedRequest, 15),
        (b"GET / HTTP/3\r\n", Refusal::MalformedRequest, 13),
        (b"GET / http/1.1\r\n", Refusal::MalformedRequest, 15),
        (b"GET / HTTP/1.1 \r\n", Refusal::MalformedRequest, 16),
        (b"GET / HTTP/1.10\r\n", Refusal::MalformedRequest, 16),
        (b"GET / RTSP/1.0\r\n", Refusal::MalformedRequest, 15),
        (b"GET / HTTP/1.1\n", Refusal::MalformedRequest, 15), // bare LF
        (b"GET / HTTP/1.1\r\r\n", Refusal::MalformedRequest, 16), // bare CR
        (b"GET / HTTP/1.1\r\n Host: a\r\n", Refusal::MalformedRequest, 17),
        (b"GET / HTTP/1.1\r\n\tHost: a\r\n", Refusal::MalformedRequest, 17),
        (b"GET / HTTP/1.1\r\n: a\r\n", Refusal::MalformedRequest, 17),
        (b"GET / HTTP/1.1\r\n\n", Refusal::MalformedRequest, 17),
        (b"GET / HTTP/1.1\r\n\rx", Refusal::MalformedRequest, 18),
        (b"GET / HTTP/1.1\r\nA: b\n", Refusal::MalformedRequest, 21),
        (b"GET / HTTP/1.1\r\nA: b\rc\r\n", Refusal::MalformedRequest, 22),
        (b"GET / HTTP/1.1\r\nA: b\0\r\n", Refusal::MalformedRequest, 21),
        (b"GET / HTTP/1.1\r\nA: \x1b[2J\r\n", Refusal::MalformedRequest, 20),
        (b"GET / HTTP/1.1\r\nA: \x0bb\r\n", Refusal::MalformedRequest, 20),
        (b"GET / HTTP/1.1\r\nA: b\x7f\r\n", Refusal::MalformedRequest, 21),
        (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n", Refusal::MalformedRequest, 23), // obs-fold
        (b"GET / HTTP/1.1\r\nA: b\r\n\tc\r\n", Refusal::MalformedRequest, 23),
    ];
    for &(bytes, refusal, at) in cases {
        let shown = bytes.escape_ascii();
        assert_eq!(bytewise(HeadReader::new(), bytes), (Err(refusal), at), "{shown}");
        assert_eq!(HeadReader::new().advance(bytes), Err(refusal), "{shown} at once");
    }
}

#[test]
fn a_refusal_stays() {
    let mut reader = HeadReader::new();
    assert_eq!(
        reader.advance(b"GET / HTTP/1.1\r\nA: b\n"),
        Err(Refusal::MalformedRequest)
    );
    assert_eq!(
        reader.advance(b"GET / HTTP/1.1\r\nA: b\n\r\n\r\n"),
        Err(Refusal::MalformedRequest)
    );
}

fn head_of(length: usize) -> Vec<u8> {
    let start = b"GET / HTTP/1.1\r\nX: ";
    [start, vec![b'a'; length - start.len() - 4].as_slice(), b"\r\n\r\n"].concat()
}

#[test]
fn the_limit_holds_to_the_byte_and_at_once() {
    assert_eq!(HeadReader::new().advance(&head_of(MAX_HEAD)), Ok(Some(MAX_HEAD)));
    assert_eq!(
        HeadReader::new().advance(&head_of(MAX_HEAD + 1)),
        Err(Refusal::HeadTooLarge)
    );
    let (verdict, at) = bytewise(HeadReader::new(), &head_of(MAX_HEAD + 1));
    assert_eq!((verdict, at), (Err(Refusal::HeadTooLarge), MAX_HEAD));
    // Endless first lines and endless fields as well.
    assert_eq!(
        HeadReader::new().advance(&vec![b'a'; MAX_HEAD]),
        Err(Refusal::HeadTooLarge)
    );
    let fields = [b"GET / HTTP/1.1\r\n", b"A: b\r\n".repeat(MAX_HEAD / 6).as_slice()].concat();
    assert_eq!(HeadReader::new().advance(&fields), Err(Refusal::HeadTooLarge));
}

/// <https://github.com/seanmonstar/httparse/pull/217>: parsing again at each read costs quadratic time. Bytes that were
/// looked at are spoiled here, which nobody can notice who does not look at them again.
#[test]
fn httparse_pr_217_every_byte_is_looked_at_once() {
    let head = head_of(MAX_HEAD);
    let first_line = 16;
    let mut reader = HeadReader::new();
    assert_eq!(reader.advance(&head[..first_line]), Ok(None));
    let mut arrived = vec![0; first_line];
    for &byte in &head[first_line..head.len() - 1] {
        arrived.push(byte);
        assert_eq!(reader.advance(&arrived), Ok(None));
        *arrived.last_mut().unwrap() = 0;
    }
    arrived.push(b'\n');
    assert_eq!(reader.advance(&arrived), Ok(Some(MAX_HEAD)));
}

#[test]
fn a_response_head_has_its_own_first_line() {
    let head = b"HTTP/1.1 200 Tout va bien \xe9\t!\r\nA: b\r\n\r\nbody";
    assert_eq!(HeadReader::for_response().advance(head), Ok(Some(head.len() - 4)));
    for (bytes, at) in [
        (b"<html>".as_slice(), 1), // HTTP/0.9
        (b"\r\nHTTP/1.1 200 OK", 1),
        (b"SSH-2.0-x", 1),
        (b"ICY 200 OK\r\n", 1),
        (b"HTTP/2.0 200", 6),
        (b"HTTP/1.\r\n", 8),
        (b"HTTP/1.1 200 OK\n", 16), // bare LF
        (b"HTTP/1.1 200 OK\r\nA: b\n", 22),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c", 24),
    ] {
        let shown = bytes.escape_ascii();
        let verdict = bytewise(HeadReader::for_response(), bytes);
        assert_eq!(verdict, (Err(Refusal::MalformedResponse), at), "{shown}");
    }
    let endless = [b"HTTP/1.1 200 ", vec![b'a'; MAX_HEAD].as_slice()].concat();
    assert_eq!(
        HeadReader::for_response().advance(&endless),
        Err(Refusal::MalformedResponse)
    );
}
