//! What is answered to good queries.

use super::query::{
    A, AAAA, AD, ANY, CD, DO, PTR, RD, SOA, edns_query, message, name_of, opt, query, question, wire_name,
    with_additional, with_flags,
};
use super::{POLICY, Policy, host};
use allowlist::Refusal;
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, RData};
use std::net::Ipv4Addr;
use wire::dns::{AnswerAddress, MAX_ANSWER, Outcome, respond};

/// The one answer's data.
fn data(message: &Message) -> &RData {
    let [answer] = &*message.answers else {
        panic!("one answer expected: {message:?}");
    };
    assert_eq!((answer.ttl, answer.dns_class), (30, DNSClass::IN));
    assert_eq!(answer.name, *message.queries[0].name());
    assert!(message.authorities.is_empty());
    &answer.data
}

/// NOERROR or NXDOMAIN without data, but with the SOA that says how long that holds.
fn assert_negative(message: &Message, code: ResponseCode) {
    assert_eq!(message.metadata.response_code, code);
    assert!(message.metadata.authoritative);
    assert!(message.answers.is_empty());
    let [authority] = &*message.authorities else {
        panic!("one authority expected: {message:?}");
    };
    let RData::SOA(soa) = &authority.data else {
        panic!("SOA expected: {authority}");
    };
    assert!(authority.name.is_root());
    assert_eq!((authority.ttl, soa.minimum), (10, 10));
    assert_eq!(
        (soa.mname.to_ascii(), soa.rname.to_ascii()),
        ("as-router.invalid.".into(), "nobody.invalid.".into())
    );
}

/// The info code and the text of the extended error, if there is one.
fn extended_error(message: &Message) -> Option<(u16, String)> {
    let edns = message.edns.as_ref()?;
    let [option] = edns.options().as_ref() else {
        return None;
    };
    let (code, bytes) = (u16::from(option.0), Vec::<u8>::try_from(&option.1).expect("an option"));
    assert_eq!(code, 15, "EDE is option 15 (RFC 8914 section 2)");
    let text = String::from_utf8(bytes[2..].to_vec()).expect("RFC 8914 section 2: text is UTF-8");
    Some((u16::from_be_bytes([bytes[0], bytes[1]]), text))
}

fn refused(name: &str) -> Outcome {
    Outcome::Refused {
        name: Some(host(name)),
        refusal: Refusal::NameNotAllowed,
    }
}

/// Byte for byte once, so that not only hickory says so.
#[test]
fn the_whole_answer() {
    let (outcome, out, _) = POLICY.ask(&edns_query("Api.Anthropic.COM", A));
    assert_eq!(outcome, Outcome::Answered);
    let expected = [
        &[0xbe, 0xef, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 1][..],
        b"\x03Api\x09Anthropic\x03COM\0\0\x01\0\x01",
        &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4],
        &POLICY.address("api.anthropic.com").octets(),
        &[0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn allowed_names_have_their_loopback_address() {
    for name in [
        "api.anthropic.com",
        "example.com",
        "a.example.com",
        "a.b.c.example.com",
        "db.example.org",
        "_dmarc.a-b.example.net",
    ] {
        for kind in [A, ANY] {
            let (outcome, _, message) = POLICY.ask(&query(name, kind));
            assert_eq!(outcome, Outcome::Answered, "{name}");
            assert_eq!(*data(&message), RData::A(POLICY.address(name).into()), "{name}");
            assert!(POLICY.address(name).is_loopback(), "{name}");
            assert!(message.metadata.authoritative && !message.metadata.truncation, "{name}");
        }
    }
}

#[test]
fn a_fixed_address_serves_all_names() {
    let router = Ipv4Addr::new(203, 0, 113, 7);
    let mut zone = POLICY.zone();
    zone.answer = AnswerAddress::Fixed(router);
    let mut out = Vec::new();
    assert_eq!(respond(&query("a.example.com", A), &zone, &mut out), Outcome::Answered);
    assert_eq!(
        *data(&Message::from_vec(&out).expect("a message")),
        RData::A(router.into())
    );
}

/// pi-hole/FTL #3039, docker/for-mac #5088, home-assistant/plugin-dns #81, nebula #1668, envoy #42590, aardvark-dns #679:
/// NXDOMAIN for AAAA took the name away from musl clients. Nor is there ever data: no ECH keys, no address hints.
#[test]
fn docker_for_mac_5088_aardvark_679_other_types_are_nodata() {
    for kind in (0..300)
        .filter(|kind| ![A, ANY, 251, 252].contains(kind))
        .chain([32768, 65535])
    {
        let (outcome, _, message) = POLICY.ask(&edns_query("api.anthropic.com", kind));
        assert_eq!(outcome, Outcome::Answered, "type {kind}");
        assert_negative(&message, ResponseCode::NoError);
        assert_eq!(extended_error(&message), None, "type {kind}");
    }
}

/// RFC 8020: after NXDOMAIN for githubusercontent.com a resolver may take raw.githubusercontent.com for absent.
#[test]
fn parents_of_allowed_names_exist() {
    for name in [
        "com",
        "anthropic.com",
        "githubusercontent.com",
        "example.org",
        "org",
        "a-b.example.net",
    ] {
        for kind in [A, AAAA, ANY, SOA] {
            let (outcome, _, message) = POLICY.ask(&edns_query(name, kind));
            assert_eq!(outcome, refused(name), "{name}");
            assert_negative(&message, ResponseCode::NoError);
            assert!(extended_error(&message).is_some(), "{name}");
        }
    }
}

/// tinyproxy #627: a suffix matched too much. podman #23128: search domains must fail at once.
#[test]
fn tinyproxy_627_podman_23128_all_else_does_not_exist() {
    for name in [
        "evilexample.com",
        "example.com.evil.net",
        "xexample.com",
        "x.api.anthropic.com",
        "api.anthropic.com.dns.podman",
        "api.anthropic",
        "localhost",
        "host.containers.internal",
        "uk",
    ] {
        for kind in [A, AAAA, 65, ANY] {
            let (outcome, _, message) = POLICY.ask(&edns_query(name, kind));
            assert_eq!(outcome, refused(name), "{name}");
            assert_negative(&message, ResponseCode::NXDomain);
            let (code, text) = extended_error(&message).expect("an extended error");
            assert_eq!(code, 15, "Blocked (RFC 8914 section 4.16)");
            assert!(text.contains("allowlist"), "{text}");
        }
    }
    let nothing = Policy::new("# nothing\n");
    let (outcome, _, message) = nothing.ask(&query("api.anthropic.com", A));
    assert_eq!(outcome, refused("api.anthropic.com"));
    assert_negative(&message, ResponseCode::NXDomain);
}

#[test]
fn names_that_are_no_host_names_do_not_exist() {
    let long = [b'a'; 63];
    let cases: [&[&[u8]]; 10] = [
        &[b"127", b"0", b"0", b"1"],
        &[b"1"],
        &[b"0x7f", b"1"],
        &[b"a b", b"example", b"com"],
        &[b"a\0", b"example", b"com"],
        &[b"\xff\xfe", b"example", b"com"],
        // One label with a dot in it is not two labels.
        &[b"api.anthropic", b"com"],
        &[b"a.example.com"],
        &[b"-a", b"example", b"com"],
        &[b"*", &long, &long, b"com"],
    ];
    for labels in cases {
        let name = name_of(labels);
        let (outcome, out, message) = POLICY.ask(&message(RD, [1, 0, 0, 0], &question(&name, A, 1)));
        let invalid = Outcome::Refused {
            name: None,
            refusal: Refusal::InvalidName,
        };
        assert_eq!(outcome, invalid, "{labels:?}");
        assert_negative(&message, ResponseCode::NXDomain);
        assert_eq!(out[12..12 + name.len()], name);
    }
}

#[test]
fn the_root_exists_and_has_nothing() {
    for policy in [&*POLICY, &Policy::new("# nothing\n")] {
        for kind in [A, 2, SOA, ANY] {
            let (outcome, _, message) = policy.ask(&query(".", kind));
            assert_eq!(outcome, Outcome::Answered);
            assert_negative(&message, ResponseCode::NoError);
        }
    }
}

#[test]
fn ptr_of_a_planned_address_gives_its_name() {
    let reverse = |address: Ipv4Addr| {
        let [a, b, c, d] = address.octets();
        format!("{d}.{c}.{b}.{a}.in-addr.arpa")
    };
    for name in ["api.anthropic.com", "db.example.org"] {
        let question = reverse(POLICY.address(name));
        for kind in [PTR, ANY] {
            let (outcome, _, message) = POLICY.ask(&query(&question, kind));
            assert_eq!(outcome, Outcome::Answered, "{name}");
            let RData::PTR(target) = data(&message) else {
                panic!("PTR expected: {message:?}");
            };
            assert_eq!(target.0.to_ascii(), format!("{name}."));
        }
        let (outcome, _, message) = POLICY.ask(&query(&question, A));
        assert_eq!(outcome, Outcome::Answered, "{name}");
        assert_negative(&message, ResponseCode::NoError);
    }
    for other in ["1.0.0.127.in-addr.arpa", "1.113.0.203.in-addr.arpa", "1.0.0.0.ip6.arpa"] {
        let (outcome, _, message) = POLICY.ask(&query(other, PTR));
        assert_eq!(outcome, refused(other));
        assert_negative(&message, ResponseCode::NXDomain);
    }
    for above in ["arpa", "in-addr.arpa", "127.in-addr.arpa", "64.127.in-addr.arpa"] {
        let (outcome, _, message) = POLICY.ask(&query(above, PTR));
        assert_eq!(outcome, Outcome::Answered);
        assert_negative(&message, ResponseCode::NoError);
    }
}

/// golang/go #15434 #12778 #64783: NOERROR without data, AA and RA reads as a lame referral.
#[test]
fn go_12778_64783_flags() {
    for name in ["api.anthropic.com", "anthropic.com", "example.edu"] {
        for kind in [A, AAAA] {
            for flags in [0, RD, CD, AD, RD | CD | AD, 0x0040, 0x0400, 0x0200, 0x0080] {
                let (_, _, message) = POLICY.ask(&with_flags(query(name, kind), flags));
                let reply = message.metadata;
                assert_eq!(reply.id, 0xbeef);
                assert!(
                    reply.authoritative && !reply.truncation && !reply.authentic_data,
                    "{flags:#x}"
                );
                assert_eq!(reply.recursion_desired, flags & RD != 0, "{flags:#x}");
                assert_eq!(reply.recursion_available, flags & RD != 0, "{flags:#x}");
                assert_eq!(reply.checking_disabled, flags & CD != 0, "{flags:#x}");
            }
        }
    }
}

/// blocky #2240: without OPT in the reply systemd-resolved takes the server for one without EDNS. And only if asked:
/// RFC 6891 section 7.
#[test]
fn blocky_2240_opt_if_and_only_if_asked() {
    for name in ["api.anthropic.com", "anthropic.com", "example.edu", "."] {
        for kind in [A, AAAA] {
            let (_, _, message) = POLICY.ask(&query(name, kind));
            assert!(message.edns.is_none(), "{name}");
            // Sizes below 512 count as 512 (RFC 6891 section 6.2.3); unknown options and flags are ignored.
            for (size, flags, options) in [
                (1232, 0, &[][..]),
                (0, DO, &[]),
                (65535, DO | 0x4001, &[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]),
                (512, 0, &[0xff, 0xff, 0, 0]),
            ] {
                let (_, _, message) = POLICY.ask(&with_additional(query(name, kind), &opt(size, flags, options)));
                let edns = message.edns.expect("OPT");
                assert_eq!((edns.version(), edns.max_payload()), (0, 1232), "{name}");
                assert_eq!((edns.flags().dnssec_ok, edns.flags().z), (flags & DO != 0, 0), "{name}");
            }
        }
    }
}

/// No reply needs the TC bit, whatever the name: hickory-dns #3814 got 512 bytes wrong.
#[test]
fn hickory_3814_the_longest_name_fits_512_bytes() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(longest.len(), 253);
    for text in [longest.clone(), format!("x.{longest}"), "other.example".to_owned()] {
        let policy = Policy::new(if text.len() > 253 { "# nothing\n" } else { &text });
        for kind in [A, AAAA] {
            let (outcome, out, reply) = policy.ask(&edns_query(&longest, kind));
            assert_eq!(outcome == Outcome::Answered, text == longest);
            assert!(out.len() <= MAX_ANSWER && out.len() <= 512 && !reply.metadata.truncation);
        }
    }
    // The longest question and the longest answer to it; it is no host name, and so it does not exist.
    let (_, out, _) = POLICY.ask(&edns_query(&longest, A));
    assert_eq!(out.len(), MAX_ANSWER);

    let policy = Policy::new(&longest);
    let [a, b, c, d] = policy.address(&longest).octets();
    let (outcome, out, _) = policy.ask(&edns_query(&format!("{d}.{c}.{b}.{a}.in-addr.arpa"), PTR));
    assert_eq!(outcome, Outcome::Answered);
    assert!(out.ends_with(&[&wire_name(&longest)[..], &opt(1232, 0, &[])].concat()));
}
