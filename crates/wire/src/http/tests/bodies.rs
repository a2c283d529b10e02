use allowlist::Refusal;

use super::super::{BodyLength, BodyReader, HeadReader, parse_request};
use super::{post, request};

fn chunked() -> BodyReader {
    BodyReader::new(BodyLength::Chunked)
}

#[test]
fn a_length_is_counted_down() {
    let mut body = BodyReader::new(BodyLength::Length(5));
    assert_eq!(body.remaining(), 5);
    assert_eq!(body.advance(b"abc"), Ok(3));
    assert!(!body.is_done() && !body.may_end());
    assert_eq!(body.advance(b"deGET /"), Ok(2));
    assert!(body.is_done() && body.may_end());
    assert_eq!(body.advance(b"GET /"), Ok(0));
}

#[test]
fn no_body_is_done_at_once() {
    for length in [BodyLength::None, BodyLength::Length(0)] {
        let mut body = BodyReader::new(length);
        assert!(body.is_done());
        assert_eq!((body.remaining(), body.advance(b"x")), (0, Ok(0)));
    }
}

#[test]
fn until_close_takes_everything_and_may_end_anywhere() {
    let mut body = BodyReader::for_response(BodyLength::UntilClose);
    assert_eq!(body.advance(b"abc"), Ok(3));
    assert_eq!(body.skip(u64::MAX), Ok(()));
    assert_eq!(body.remaining(), u64::MAX);
    assert!(!body.is_done() && body.may_end());
}

#[test]
fn what_is_moved_unseen_is_accounted_for() {
    let mut body = BodyReader::new(BodyLength::Length(1 << 40));
    assert_eq!(body.skip((1 << 40) - 1), Ok(()));
    assert_eq!(body.advance(b"xy"), Ok(1));
    assert_eq!(body.skip(1), Err(Refusal::AmbiguousFraming), "more than there is");
    assert!(!body.is_done());
    assert_eq!(body.advance(b""), Err(Refusal::AmbiguousFraming), "and it stays broken");

    let mut body = chunked();
    assert_eq!((body.remaining(), body.advance(b"a\r\n01234")), (0, Ok(8)));
    assert_eq!((body.remaining(), body.skip(4)), (5, Ok(())));
    assert_eq!((body.remaining(), body.skip(1)), (1, Ok(())));
    assert_eq!((body.remaining(), body.skip(0)), (0, Ok(())));
    assert_eq!(body.advance(b"\r\n0\r\n\r\nGET"), Ok(7));
    assert!(body.is_done());
    assert_eq!(body.skip(1), Err(Refusal::AmbiguousFraming));
}

#[test]
fn chunked_bodies() {
    let long_extension = format!("1;{}\r\na\r\n0\r\n\r\n", "e".repeat(255));
    let long_trailers = format!("0\r\nA: {}\r\n\r\n", "b".repeat(8 * 1024 - 7));
    for coded in [
        "0\r\n\r\n",
        "00000\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0000000000000005\r\nhello\r\n0\r\n\r\n",
        "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
        "2\r\n\r\n\r\n0\r\n\r\n",
        "5;a=b;c=\"d e\"\r\nhello\r\n0;x\r\n\r\n",
        "0\r\nX-Checksum: abc\r\nEmpty:\r\n\r\n",
        &long_extension,
        &long_trailers,
    ] {
        let mut body = chunked();
        let followed = format!("{coded}GET /");
        assert_eq!(body.advance(followed.as_bytes()), Ok(coded.len()), "{coded:?}");
        assert!(body.is_done(), "{coded:?}");
        let mut body = chunked();
        assert_eq!(body.advance(&coded.as_bytes()[..coded.len() - 1]), Ok(coded.len() - 1));
        assert!(!body.is_done() && !body.may_end(), "{coded:?}");
    }
}

/// Sizes, line ends and extensions that servers read differently.
#[test]
fn broken_chunked_bodies() {
    let long_extension = format!("1;{}\r\na\r\n0\r\n\r\n", "e".repeat(256));
    let long_trailers = format!("0\r\nA: {}\r\n\r\n", "b".repeat(8 * 1024 - 6));
    let many_trailers = format!("0\r\n{}\r\n", "A:b\r\n".repeat(8 * 1024 / 5 + 1));
    for coded in [
        "\r\n",
        " 5\r\n",
        "5 \r\n",
        "5 ;a\r\n",
        "5\t\r\n",
        "+5\r\n",
        "-5\r\n",
        "0x5\r\n",
        "g\r\n",
        "5_0\r\n",
        "5,\r\n",
        ";a\r\n",
        "00000000000000005\r\n",
        "10000000000000000\r\n",
        "ffffffffffffffff\r\n",
        "8000000000000000\r\n",
        "5\nhello",
        "5\rhello",
        "5\r\r\nhello",
        "5;a\nhello",
        "5;a\rb\r\nhello",
        "5;\0\r\nhello",
        "5;\x7f\r\nhello",
        "5\r\nhello\n",
        "5\r\nhello\rx",
        "5\r\nhelloX\r\n",
        "5\r\nhello0\r\n",
        "4\r\nhello\r\n",
        "5\r\nhell\r\n0\r\n",
        "0\r\n\n",
        "0\n\r\n",
        "0\r\n\rx",
        "0\r\nGET / HTTP/1.1\r\n",
        "0\r\n: a\r\n",
        "0\r\nA : b\r\n",
        "0\r\nA\r\n",
        "0\r\n A: b\r\n",
        "0\r\nA: b\n",
        "0\r\nA: b\r\n c\r\n",
        "0\r\nA: \0\r\n",
        "0\r\nHost: other.example\r\n",
        "0\r\ncontent-length: 5\r\n",
        "0\r\nA: b\r\nTransfer-Encoding: chunked\r\n",
        "0\r\nTransfer_Encoding: chunked\r\n",
        &long_extension,
        &long_trailers,
        &many_trailers,
    ] {
        let mut body = chunked();
        assert_eq!(
            body.advance(coded.as_bytes()),
            Err(Refusal::AmbiguousFraming),
            "{coded:?}"
        );
        assert_eq!(
            body.advance(b"0\r\n\r\n"),
            Err(Refusal::AmbiguousFraming),
            "{coded:?} stays broken"
        );
        assert!(!body.is_done() && !body.may_end() && body.remaining() == 0);
        let mut body = BodyReader::for_response(BodyLength::Chunked);
        assert_eq!(
            body.advance(coded.as_bytes()),
            Err(Refusal::MalformedResponse),
            "{coded:?}"
        );
    }
}

#[test]
fn the_largest_chunk() {
    let mut body = chunked();
    assert_eq!(body.advance(b"7fffffffffffffff\r\n"), Ok(18));
    assert_eq!(body.remaining(), i64::MAX as u64);
    assert_eq!(body.skip(i64::MAX as u64), Ok(()));
    assert_eq!(body.advance(b"\r\n0\r\n\r\n"), Ok(7));
    assert!(body.is_done());
}

/// CVE-2023-39326: a server reads on and on for a byte of data a line.
#[test]
fn cve_2023_39326_endless_chunk_extension() {
    let mut body = chunked();
    assert_eq!(body.advance(b"1;"), Ok(2));
    let mut taken = 0;
    while body.advance(b"aaaaaaaa").is_ok() {
        taken += 8;
        assert!(taken <= 256);
    }
}

/// A second request for another host hides behind the first: pipelined, behind a body, behind chunks. The framing of
/// the first ends where the second begins, so that it is read, checked and found to be for another host.
#[test]
fn httpjail_57_dsbx_30176_host_changes_within_a_connection() {
    for (fields, sent_body) in [
        ("", ""),
        ("Content-Length: 4\r\n", "a=b&"),
        ("Transfer-Encoding: chunked\r\n", "4\r\na=b&\r\n0\r\n\r\n"),
    ] {
        let second = "GET /secret HTTP/1.1\r\nHost: other.example\r\n\r\n";
        let sent = [post(fields), sent_body.into(), second.into()].concat();
        let length = HeadReader::new().advance(&sent).unwrap().unwrap();
        let first = parse_request(&sent[..length]).unwrap();
        assert_eq!(first.host.as_str(), "example.com");
        let mut body = BodyReader::new(first.body);
        let taken = body.advance(&sent[length..]).unwrap();
        assert!(body.is_done());
        let rest = &sent[length + taken..];
        assert_eq!(rest, second.as_bytes());
        assert_eq!(request(rest).unwrap().host.as_str(), "other.example");
    }
}
