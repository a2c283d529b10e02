//! A ClientHello gets the same verdict however it is cut, and a name that it gives is the one that rustls reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustls::server::Acceptor;
use wire::tls::{HelloReader, MAX_RECEIVED, alert};

fuzz_target!(|bytes: &[u8]| {
    let at_once = HelloReader::new().advance(bytes);
    let mut reader = HelloReader::new();
    let mut bytewise = Ok(None);
    for end in 0..=bytes.len() {
        bytewise = reader.advance(bytes.get(..end).unwrap_or_default());
        if bytewise != Ok(None) {
            break;
        }
    }
    assert_eq!(at_once, bytewise);
    match at_once {
        Ok(None) => assert!(bytes.len() < MAX_RECEIVED),
        Ok(Some(hello)) => {
            if let Some(theirs) = rustls_name(bytes) {
                assert_eq!(theirs.as_deref(), Some(hello.name.as_str()));
            }
        }
        Err(refusal) => assert_eq!(alert(refusal).first(), Some(&21)),
    }
});

/// `None` if rustls does not take the hello.
fn rustls_name(bytes: &[u8]) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        acceptor.read_tls(&mut rest).ok()?;
        if let Some(accepted) = acceptor.accept().ok()? {
            return Some(accepted.client_hello().server_name().map(str::to_owned));
        }
    }
    None
}
