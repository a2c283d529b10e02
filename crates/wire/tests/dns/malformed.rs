//! What is answered to queries that are malformed, or of a kind that is not served.

use super::POLICY;
use super::query::{
    A, OPT, RD, edns_query, message, opt, query, question, record, wire_name, with_additional, with_flags,
};
use hickory_proto::op::ResponseCode;
use wire::dns::{Outcome, respond};

/// The reply to `query` must be an error with this code; true if it gives the question back, and if it has OPT.
fn rejected(query: &[u8], code: ResponseCode) -> (bool, bool) {
    let (outcome, out, reply) = POLICY.ask(query);
    assert_eq!(outcome, Outcome::Rejected(code), "{query:?}");
    assert_eq!(u16::from(reply.metadata.response_code), u16::from(code), "{query:?}");
    assert!(!reply.metadata.authoritative, "an error is no word on what there is");
    assert!(reply.answers.is_empty() && reply.authorities.is_empty());
    if let [_] = *reply.queries {
        assert!(query[12..].starts_with(&out[12..out.len() - if reply.edns.is_some() { 11 } else { 0 }]));
    }
    (reply.queries.len() == 1, reply.edns.is_some())
}

#[test]
fn what_is_no_query_gets_no_answer() {
    let good = query("api.anthropic.com", A);
    let mut out = vec![1];
    for length in 0..12 {
        assert_eq!(respond(&good[..length], &POLICY.zone(), &mut out), Outcome::Ignore);
        assert!(out.is_empty());
    }
    assert_eq!(
        respond(&with_flags(good, 0x8180), &POLICY.zone(), &mut out),
        Outcome::Ignore
    );
    assert!(out.is_empty());
}

#[test]
fn every_truncated_query_is_malformed() {
    for good in [query("api.anthropic.com", A), edns_query("api.anthropic.com", A)] {
        for length in 12..good.len() {
            let (question, opt) = rejected(&good[..length], ResponseCode::FormErr);
            assert_eq!(question, length >= 12 + 19 + 4);
            assert!(!opt);
        }
    }
}

/// hickory-proto 0.26.3 reserves memory for as many questions as the header claims. RFC 9619: it is one, always.
#[test]
fn rfc_9619_another_number_of_questions() {
    let one = question(&wire_name("api.anthropic.com"), A, 1);
    for (count, sections) in [
        (0, vec![]),
        (0, one.clone()),
        (2, one.repeat(2)),
        (65535, one.clone()),
        (65535, vec![]),
    ] {
        let (question, opt) = rejected(&message(RD, [count, 0, 0, 0], &sections), ResponseCode::FormErr);
        assert!(!question && !opt);
    }
    rejected(&message(RD, [1, 65535, 65535, 65535], &one), ResponseCode::FormErr);
}

#[test]
fn other_opcodes_are_not_implemented() {
    for opcode in 1..16 {
        let flags = opcode << 11 | RD;
        let echoed = rejected(
            &with_flags(edns_query("api.anthropic.com", A), flags),
            ResponseCode::NotImp,
        );
        assert_eq!(echoed, (true, true), "opcode {opcode}");
        let header = message(flags, [0; 4], &[]);
        assert_eq!(
            rejected(&header, ResponseCode::NotImp),
            (false, false),
            "opcode {opcode}"
        );
        let (_, _, reply) = POLICY.ask(&header);
        assert_eq!(u8::from(reply.metadata.op_code), opcode as u8);
    }
}

#[test]
fn other_classes_and_zone_transfers_are_refused() {
    for class in [0, 2, 3, 4, 254, 255, 65535] {
        let bytes = message(RD, [1, 0, 0, 0], &question(&wire_name("api.anthropic.com"), A, class));
        assert_eq!(rejected(&bytes, ResponseCode::Refused), (true, false), "class {class}");
    }
    for kind in [251, 252] {
        for name in ["api.anthropic.com", "example.edu", "."] {
            assert_eq!(
                rejected(&edns_query(name, kind), ResponseCode::Refused),
                (true, true),
                "type {kind}"
            );
        }
    }
}

/// bind9 `fuzz/dns_name_fromwire.in`, RUSTSEC-2026-0119.
#[test]
fn bind9_fuzz_names() {
    let ask = |name: &[u8]| message(RD, [1, 0, 0, 0], &question(name, A, 1));
    let long = [&[63], &[b'a'; 63][..]].concat();
    let cases = [
        ("a pointer to the header", vec![0xc0, 0]),
        ("a pointer to itself", vec![0xc0, 12]),
        ("a label, then a pointer to it", vec![1, b'a', 0xc0, 12]),
        ("a pointer ahead", vec![0xc0, 14, 1, b'a', 0]),
        ("an extended label type", vec![0x41, 1, 0]),
        ("a reserved label type", vec![0x80, 0]),
        ("a label of 64", [&[64], &[b'a'; 64][..], &[0]].concat()),
        (
            "a name of 256 bytes",
            [&long.repeat(3)[..], &[62], &[b'a'; 62], &[0]].concat(),
        ),
        ("a name without an end", long.repeat(8)),
    ];
    for (case, name) in cases {
        assert_eq!(rejected(&ask(&name), ResponseCode::FormErr), (false, false), "{case}");
    }
}

#[test]
fn edns_of_another_version() {
    for version in [1u32, 255] {
        let options: [&[u8]; 2] = [&[], b"who knows what"];
        for options in options {
            let opt = opt(4096, version << 16, options);
            let bytes = with_additional(query("api.anthropic.com", A), &opt);
            assert_eq!(rejected(&bytes, ResponseCode::BADVERS), (true, true));
            let (_, _, reply) = POLICY.ask(&bytes);
            assert_eq!(reply.edns.expect("OPT").version(), 0);
        }
    }
}

#[test]
fn malformed_opt_records() {
    let good = query("api.anthropic.com", A);
    let one = edns_query("api.anthropic.com", A);
    let cases = [
        ("two of them", with_additional(one.clone(), &opt(1232, 0, &[]))),
        (
            "with an owner",
            with_additional(good.clone(), &record(&wire_name("a"), OPT, 1232, 0, &[])),
        ),
        (
            "with a pointer for its owner",
            with_additional(good.clone(), &record(&[0xc0, 12], OPT, 1232, 0, &[])),
        ),
        (
            "half an option",
            with_additional(good.clone(), &opt(1232, 0, &[0, 10, 0])),
        ),
        (
            "an option longer than the record",
            with_additional(good.clone(), &opt(1232, 0, &[0, 10, 0, 8, 1])),
        ),
    ];
    for (case, bytes) in cases {
        assert_eq!(rejected(&bytes, ResponseCode::FormErr), (true, true), "{case}");
    }
    let mut in_answers = with_additional(good, &opt(1232, 0, &[]));
    in_answers.swap(7, 11);
    assert_eq!(rejected(&in_answers, ResponseCode::FormErr), (true, false));
    let trailing = [&one[..], &[0]].concat();
    assert_eq!(rejected(&trailing, ResponseCode::FormErr), (true, true));
}

/// RFC 6891 section 6.1.1: OPT may stand anywhere among the additional records. Others are passed over.
#[test]
fn records_beside_opt_are_passed_over() {
    let other = record(&[0xc0, 12], A, 1, 0, &[192, 0, 2, 1]);
    let mut bytes = with_additional(query("api.anthropic.com", A), &other);
    bytes = with_additional(bytes, &opt(1232, 0, &[]));
    bytes = with_additional(bytes, &record(&wire_name("key.example"), 250, 255, 0, &[0; 30]));
    let (outcome, _, reply) = POLICY.ask(&bytes);
    assert_eq!(outcome, Outcome::Answered);
    assert!(reply.edns.is_some() && reply.additionals.is_empty());
}
