//! A head gets the same verdict however it is cut, and a request that passes has one reading.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http::{BodyLength, HeadReader, Method, parse_request, parse_response};

fuzz_target!(|bytes: &[u8]| {
    for new in [HeadReader::new, HeadReader::for_response] {
        let at_once = new().advance(bytes);
        let mut reader = new();
        let mut bytewise = Ok(None);
        for end in 0..=bytes.len() {
            bytewise = reader.advance(bytes.get(..end).unwrap_or_default());
            if bytewise != Ok(None) {
                break;
            }
        }
        assert_eq!(at_once, bytewise);
    }
    if let Ok(Some(length)) = HeadReader::new().advance(bytes) {
        request(bytes.get(..length).unwrap_or_default());
    } else {
        assert!(parse_request(bytes).is_err());
    }
    if let Ok(Some(length)) = HeadReader::for_response().advance(bytes) {
        response(bytes.get(..length).unwrap_or_default());
    } else {
        assert!(parse_response(bytes, Method::Other).is_err());
    }
});

/// Reads the head again as naively as a careless server might.
fn request(head: &[u8]) {
    let Ok(parsed) = parse_request(head) else { return };
    let text = String::from_utf8_lossy(head).to_ascii_lowercase().replace('_', "-");
    let lines: Vec<&str> = text.split(['\r', '\n']).filter(|line| !line.is_empty()).collect();
    let values = |name: &str| -> Vec<String> {
        let fields = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(field, _)| field.trim() == name).map(|(_, value)| value.trim().to_owned()).collect()
    };
    let host = parsed.host.as_str().replace('_', "-");
    let spellings = [host.clone(), format!("{host}."), format!("{host}:80"), format!("{host}.:80")];
    assert!(matches!(values("host").as_slice(), [one] if spellings.contains(one)));
    let lengths = values("content-length");
    let codings = values("transfer-encoding");
    match parsed.body {
        BodyLength::None => assert!(lengths.is_empty() && codings.is_empty()),
        BodyLength::Length(length) => assert!(lengths == [length.to_string()] && codings.is_empty()),
        BodyLength::Chunked => assert!(lengths.is_empty() && codings == ["chunked"]),
        BodyLength::UntilClose => panic!("a request has no body until close"),
    }
    assert!(values("http2-settings").is_empty());
    assert!(values("upgrade").iter().all(|value| !value.contains("h2c") || value.split(',').all(|p| p.trim() != "h2c")));
    assert!(!text.starts_with("connect ") && !text.starts_with("pri "));
}

fn response(head: &[u8]) {
    let other = parse_response(head, Method::Other);
    let to_head = parse_response(head, Method::Head);
    assert_eq!(other.is_ok(), to_head.is_ok());
    if let (Ok(other), Ok(to_head)) = (other, to_head) {
        assert_eq!(to_head.body, BodyLength::None);
        assert!(other.close || other.body != BodyLength::UntilClose);
    }
}
