use allowlist::{HostName, Refusal};

use super::super::{BodyLength, Method, parse_response, refusal_response, status};
use super::response;

const ALL: &[(Refusal, u16)] = &[
    (Refusal::NameNotAllowed, 403),
    (Refusal::PortNotAllowed, 403),
    (Refusal::IpLiteral, 403),
    (Refusal::AddressDenied, 403),
    (Refusal::Revoked, 403),
    (Refusal::ClientNotLocal, 403),
    (Refusal::InvalidName, 400),
    (Refusal::MalformedRequest, 400),
    (Refusal::HeadIncomplete, 400),
    (Refusal::MissingHost, 400),
    (Refusal::DuplicateHost, 400),
    (Refusal::InvalidHost, 400),
    (Refusal::HostMismatch, 400),
    (Refusal::AmbiguousFraming, 400),
    (Refusal::ConnectMethod, 405),
    (Refusal::HeadTimeout, 408),
    (Refusal::HostChanged, 421),
    (Refusal::HeadTooLarge, 431),
    (Refusal::UnsupportedTransferEncoding, 501),
    (Refusal::ResolveFailed, 502),
    (Refusal::NoAddress, 502),
    (Refusal::UpstreamUnreachable, 502),
    (Refusal::MalformedResponse, 502),
    (Refusal::RouterUnreachable, 502),
    (Refusal::Overloaded, 503),
    (Refusal::UpstreamTimeout, 504),
    (Refusal::CleartextHttp2, 505),
];

fn split(answer: &[u8]) -> (String, String) {
    let answer = String::from_utf8(answer.to_vec()).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (format!("{head}\r\n\r\n"), body.to_owned())
}

/// Our own strict reader takes every answer and finds its end.
#[test]
fn every_refusal_has_a_complete_answer() {
    let host = HostName::from_wire(b"blocked.example").unwrap();
    for &(refusal, code) in ALL {
        for host in [None, Some(&host)] {
            let answer = refusal_response(refusal, host, false);
            let (head, body) = split(&answer);
            let parsed = response(&answer, Method::Other).unwrap();
            assert_eq!((parsed.status, status(refusal)), (code, code), "{refusal:?}");
            assert_eq!(parsed.body, BodyLength::Length(body.len() as u64), "{refusal:?}");
            assert!(parsed.close);
            assert!(
                !head.lines().next().unwrap().ends_with(' '),
                "{refusal:?} has a reason phrase"
            );
            assert!(head.contains("\r\nContent-Type: text/plain; charset=utf-8\r\n"));
            assert!(head.contains(&format!("\r\nX-Sandbox-Refusal: {}\r\n", refusal.code())));
            assert!(
                body.contains(refusal.code()) && body.contains("sandbox") && body.ends_with('\n'),
                "{body}"
            );
            assert_eq!(body.contains("blocked.example"), host.is_some(), "{body}");
            assert!(
                body.bytes().all(|b| b == b'\n' || (b' '..=b'~').contains(&b)),
                "{body:?}"
            );
            assert!(body.lines().count() < 8 && body.len() < 800, "{body}");
        }
    }
}

#[test]
fn the_answer_to_head_has_no_body_but_its_length() {
    let whole = refusal_response(Refusal::NameNotAllowed, None, false);
    let head = refusal_response(Refusal::NameNotAllowed, None, true);
    assert!(whole.starts_with(&head) && head.ends_with(b"\r\n\r\n") && head.len() < whole.len());
    assert_eq!(parse_response(&head, Method::Head).unwrap().body, BodyLength::None);
}

#[test]
fn a_host_off_the_list_is_told_what_to_do() {
    let host = HostName::from_wire(b"pypi.example").unwrap();
    let (_, body) = split(&refusal_response(Refusal::NameNotAllowed, Some(&host), false));
    for part in [
        "pypi.example",
        "agent-sandbox",
        "allowlist",
        "allowed-hosts",
        "name-not-allowed",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
}

#[test]
fn connect_is_told_which_methods_there_are() {
    let (head, body) = split(&refusal_response(Refusal::ConnectMethod, None, false));
    assert!(head.contains("\r\nAllow: GET, HEAD,"));
    assert!(body.contains("https_proxy"));
}
