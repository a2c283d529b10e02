use allowlist::Refusal;
use proptest::prelude::*;

use super::super::{BodyLength, BodyReader, HeadReader, MAX_HEAD, Method, parse_request, parse_response};
use super::request;

/// Something like a request: pieces that matter in any order, with noise.
fn almost_a_request() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"GET / HTTP/1.1\r\n".to_vec()),
        Just(b"PRI * HTTP/2.0\r\n\r\n".to_vec()),
        Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Just(b"Host: example.com\r\n".to_vec()),
        Just(b"Content-Length: 5\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Upgrade: h2c\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b": ".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
        "[ -~]{0,12}".prop_map(String::into_bytes),
    ];
    let start = prop_oneof![3 => Just(b"GET / HTTP/1.1\r\n".to_vec()), 1 => Just(Vec::new())];
    (start, proptest::collection::vec(piece, 0..12)).prop_map(|(start, pieces)| [start, pieces.concat()].concat())
}

/// The verdict when the bytes come in pieces that end at `cuts`. Bytes after the piece that decides do not count.
fn in_pieces(
    mut reader: HeadReader,
    bytes: &[u8],
    cuts: impl Iterator<Item = usize>,
) -> Result<Option<usize>, Refusal> {
    for cut in cuts {
        match reader.advance(&bytes[..cut]) {
            Ok(None) => {}
            verdict => return verdict,
        }
    }
    reader.advance(bytes)
}

/// RFC 9112 section 7.1 read off the page, for a buffer that holds everything: where the body ends, `None` if it is
/// not a chunked body, incomplete or not.
fn naive_chunked_end(bytes: &[u8]) -> Option<usize> {
    fn line(bytes: &[u8], start: usize) -> Option<(&[u8], usize)> {
        let rest = &bytes[start..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let line = &rest[..end];
        let clean = line.iter().all(|&b| b == b'\t' || (b >= b' ' && b != 0x7f));
        clean.then_some((line, start + end + 2))
    }
    let mut at = 0;
    loop {
        let (size_line, next) = line(bytes, at)?;
        let digits = size_line.split(|&b| b == b';').next().unwrap();
        let plain = !digits.is_empty() && digits.len() <= 16 && digits.iter().all(u8::is_ascii_hexdigit);
        if !plain || size_line.len() - digits.len() > 256 {
            return None;
        }
        let size = i64::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).ok()?;
        at = next;
        if size == 0 {
            break;
        }
        let end = at.checked_add(usize::try_from(size).ok()?)?;
        if bytes.get(end..end + 2)? != b"\r\n" {
            return None;
        }
        at = end + 2;
    }
    let trailers = at;
    loop {
        let (field, next) = line(bytes, at)?;
        at = next;
        if field.is_empty() {
            return (at - trailers <= 8 * 1024).then_some(at);
        }
        let name = field.split(|&b| b == b':').next().unwrap();
        let lower = name.to_ascii_lowercase();
        let forbidden = [
            "host",
            "content-length",
            "transfer-encoding",
            "content_length",
            "transfer_encoding",
        ];
        let token = |&b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let fine = name.len() < field.len() && !name.is_empty() && name.iter().all(token);
        if !fine || forbidden.iter().any(|bad| bad.as_bytes() == lower) {
            return None;
        }
    }
}

/// A well-formed chunked body, and what it takes to make one.
fn chunked_body() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (
        proptest::collection::vec(any::<u8>(), 1..40),
        0_usize..3,
        "(;[a-z]{1,4}(=[a-z0-9]{1,4})?){0,2}",
    );
    let chunks = proptest::collection::vec(chunk, 0..6);
    (chunks, "([A-Za-z-]{1,20}: [ -~]{0,10}\r\n){0,2}").prop_map(|(chunks, trailers)| {
        let mut coded = Vec::new();
        for (data, zeros, extension) in chunks {
            coded.extend(format!("{}{:x}{extension}\r\n", "0".repeat(zeros), data.len()).bytes());
            coded.extend(data);
            coded.extend(b"\r\n");
        }
        coded.extend(format!("0\r\n{trailers}\r\n").bytes());
        coded
    })
}

/// All bytes one by one: how many are the body's, or the refusal.
fn bytewise(bytes: &[u8]) -> Result<(usize, bool), Refusal> {
    let mut body = BodyReader::new(BodyLength::Chunked);
    let mut taken = 0;
    for byte in bytes.chunks(1) {
        taken += body.advance(byte)?;
    }
    Ok((taken, body.is_done()))
}

proptest! {
    #[test]
    fn the_verdict_does_not_depend_on_the_cuts(bytes in almost_a_request(), every in 1_usize..9) {
        for reader in [HeadReader::new, HeadReader::for_response] {
            let at_once = reader().advance(&bytes);
            prop_assert_eq!(in_pieces(reader(), &bytes, (0..bytes.len()).step_by(every)), at_once);
            for cut in 0..bytes.len() {
                prop_assert_eq!(in_pieces(reader(), &bytes, std::iter::once(cut)), at_once, "cut at {}", cut);
            }
        }
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), like in almost_a_request()) {
        for bytes in [bytes, like] {
            let _ = HeadReader::new().advance(&bytes);
            let _ = HeadReader::for_response().advance(&bytes);
            let _ = parse_request(&bytes);
            let _ = parse_response(&bytes, Method::Other);
            let _ = bytewise(&bytes);
        }
    }

    /// A head that passes has one line that any reader could take for Host, and it gives that host.
    #[test]
    fn what_passes_has_one_reading(bytes in almost_a_request()) {
        if let Ok(head) = request(&bytes) {
            let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            let text = &text[..text.find("\r\n\r\n").unwrap()];
            prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n', '\0']));
            let starting = |name: &str| text.split("\r\n").filter(|line| line.trim().starts_with(name)).count();
            prop_assert_eq!(starting("host"), 1);
            let host_line = format!("\r\nhost: {}", head.host);
            prop_assert!(text.contains(&host_line));
            prop_assert!(starting("content-length") + starting("transfer-encoding") <= 1);
            prop_assert_eq!(starting("transfer-encoding") == 1, head.body == BodyLength::Chunked);
        }
    }

    #[test]
    fn valid_requests_give_back_their_parts(
        method in "(GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS|X-[A-Z]{1,6})",
        absolute in any::<bool>(),
        path in "/[!-~]{0,40}",
        host in "[a-zA-Z0-9]{1,10}(-[a-z0-9]{1,5})?(\\.[a-zA-Z][a-zA-Z0-9]{0,10}){1,3}",
        dot in "\\.?",
        port in "(:80)?",
        before in "(X-[A-Za-z-]{1,20}: ?[ -~\t]{0,30}\r\n){0,4}",
        after in "(X-[A-Za-z-]{1,20}: ?[ -~\t]{0,30}\r\n){0,4}",
        length in proptest::option::of(0_u64..=i64::MAX as u64),
        chunked in any::<bool>(),
    ) {
        let path = if absolute { path.replace('#', "") } else { path };
        let target = if absolute { format!("http://{host}{port}{path}") } else { path };
        let (framing, body) = match length {
            Some(length) => (format!("Content-Length: {length}\r\n"), BodyLength::Length(length)),
            None if chunked => ("Transfer-Encoding: chunked\r\n".to_owned(), BodyLength::Chunked),
            None => (String::new(), BodyLength::None),
        };
        let head = format!("{method} {target} HTTP/1.1\r\n{before}Host: {host}{dot}{port}\r\n{framing}{after}\r\n");
        let parsed = request(&head);
        prop_assert!(parsed.is_ok(), "{:?} for {:?}", parsed, head);
        let parsed = parsed.unwrap();
        prop_assert_eq!(parsed.host.as_str(), host.to_ascii_lowercase());
        prop_assert_eq!(parsed.body, body);
        prop_assert_eq!(parsed.method == Method::Head, method == "HEAD");
    }

    #[test]
    fn chunked_bodies_end_where_they_end(coded in chunked_body(), after in proptest::collection::vec(any::<u8>(), 0..9)) {
        let end = coded.len();
        let bytes = [coded, after].concat();
        prop_assert_eq!(naive_chunked_end(&bytes), Some(end), "the naive reader");
        for cut in 0..=end {
            let mut body = BodyReader::new(BodyLength::Chunked);
            prop_assert_eq!(body.advance(&bytes[..cut]), Ok(cut));
            prop_assert_eq!(body.advance(&bytes[cut..]), Ok(end - cut), "cut at {}", cut);
            prop_assert!(body.is_done());
        }
    }

    /// With a fault planted, the strict reader and the naive one agree on whether it still is a body and where it ends.
    #[test]
    fn a_fault_is_seen_as_the_naive_reader_sees_it(
        coded in chunked_body(),
        at in any::<proptest::sample::Index>(),
        fault in prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'0'), Just(b' '), Just(b';'), Just(b':'), any::<u8>()],
        how in 0..3,
    ) {
        let mut bytes = coded;
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = fault,
            1 => bytes.insert(at, fault),
            _ => drop(bytes.remove(at)),
        }
        let verdict = bytewise(&bytes);
        match naive_chunked_end(&bytes) {
            Some(end) => prop_assert_eq!(verdict, Ok((end, true))),
            None => prop_assert!(!matches!(verdict, Ok((_, true))), "{:?}", verdict),
        }
    }

    #[test]
    fn a_head_over_the_limit_never_passes(extra in 0_usize..2000, every in 500_usize..5000) {
        let bytes = [b"GET / HTTP/1.1\r\nHost: example.com\r\nX: ", vec![b'a'; MAX_HEAD + extra].as_slice()].concat();
        let verdict = in_pieces(HeadReader::new(), &bytes, (0..bytes.len()).step_by(every));
        prop_assert_eq!(verdict, Err(Refusal::HeadTooLarge));
    }
}
