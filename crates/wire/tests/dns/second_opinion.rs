//! hickory-proto reads every reply, and says what it means.

use super::query::{DO, RD, message, name_of, opt, question, with_additional};
use super::{POLICY, host};
use allowlist::{HostName, Service};
use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::{RData, RecordType};
use proptest::prelude::*;
use wire::dns::{MAX_ANSWER, Outcome, respond};

fn names() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let known = prop::sample::select(vec![
        "api.anthropic.com",
        "anthropic.com",
        "com",
        "example.com",
        "a.b.example.com",
        "DB.Example.ORG",
        "raw.githubusercontent.com",
        "1.64.64.127.in-addr.arpa",
        "",
    ]);
    let known = known.prop_map(|name: &str| name.split('.').filter(|l| !l.is_empty()).map(|l| l.into()).collect());
    let label = prop_oneof![
        "[a-zA-Z0-9_-]{1,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 1..63),
        Just(vec![b'x'; 63]),
    ];
    prop_oneof![known, prop::collection::vec(label, 0..4)]
}

/// Half of all bytes become lengths, pointers and the type OPT.
fn often_meaningful(byte: u8) -> u8 {
    match byte {
        0..64 => byte % 4,
        64..96 => 0xc0,
        96..128 => 41,
        _ => byte,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn every_reply_says_what_is_meant(
        labels in names(),
        kind in prop_oneof![Just(1u16), Just(28), Just(12), Just(65), Just(255), any::<u16>()],
        class in prop_oneof![9 => Just(1u16), 1 => any::<u16>()],
        flags in prop_oneof![Just(RD), any::<u16>().prop_map(|flags| flags & 0x07ff)],
        edns in prop::option::of((any::<u16>(), any::<bool>())),
    ) {
        let labels: Vec<&[u8]> = labels.iter().map(Vec::as_slice).collect();
        let asked = question(&name_of(&labels), kind, class);
        let mut bytes = message(flags, [1, 0, 0, 0], &asked);
        if let Some((size, dnssec_ok)) = edns {
            bytes = with_additional(bytes, &opt(size, if dnssec_ok { DO } else { 0 }, &[]));
        }
        let (outcome, out, reply) = POLICY.ask(&bytes);
        prop_assert!(out.len() <= MAX_ANSWER);
        prop_assert_eq!(&out[12..12 + asked.len()], &asked[..]);
        prop_assert_eq!(reply.metadata.id, 0xbeef);
        prop_assert_eq!(reply.metadata.message_type, MessageType::Response);
        prop_assert_eq!(reply.edns.as_ref().map(|edns| edns.flags().dnssec_ok), edns.map(|(_, dnssec_ok)| dnssec_ok));

        let text = labels.join(&b'.');
        let name = HostName::from_wire(&text).ok().filter(|name| name.as_str().split('.').count() == labels.len());
        let allowed = name.as_ref().filter(|name| POLICY.allowlist.decide(name, Service::Name).is_ok());
        let code = reply.metadata.response_code;
        match outcome {
            Outcome::Ignore => prop_assert!(false, "this is a query"),
            Outcome::Rejected(rejected) => {
                prop_assert!(class != 1 || matches!(kind, 251 | 252));
                prop_assert_eq!(code, rejected);
            }
            Outcome::Answered => {
                prop_assert_eq!(code, ResponseCode::NoError);
                let data = reply.answers.iter().map(|answer| &answer.data).collect::<Vec<_>>();
                match (&*data, allowed) {
                    ([RData::A(address)], Some(name)) => {
                        prop_assert!(matches!(kind, 1 | 255));
                        prop_assert_eq!(address.0, POLICY.plan.address(name));
                    }
                    ([RData::PTR(_)], None) => prop_assert!(matches!(kind, 12 | 255)),
                    ([], Some(_)) => prop_assert!(!matches!(kind, 1 | 255)),
                    ([], None) => prop_assert!(text.is_empty() || text.ends_with(b"arpa")),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            Outcome::Refused { name: reported, .. } => {
                prop_assert!(allowed.is_none());
                prop_assert!(reply.answers.is_empty());
                prop_assert_eq!(reply.authorities[0].record_type(), RecordType::SOA);
                let exists = name.as_ref().is_some_and(|name| POLICY.allowlist.has_names_below(name));
                prop_assert_eq!(code, if exists { ResponseCode::NoError } else { ResponseCode::NXDomain });
                prop_assert_eq!(reported, name);
            }
        }
    }

    /// Any bytes: no panic, no long reply, and nothing that hickory cannot read.
    #[test]
    fn any_bytes(
        counts in prop_oneof![Just([0u8, 1, 0, 0, 0, 0, 0, 1]), any::<[u8; 8]>()],
        flags in any::<[u8; 2]>(),
        rest in prop::collection::vec(any::<u8>().prop_map(often_meaningful), 0..80),
        length in 0usize..100,
    ) {
        let mut bytes = [&[1, 2][..], &flags, &counts, &rest].concat();
        bytes.truncate(length);
        let mut out = Vec::new();
        let outcome = respond(&bytes, &POLICY.zone(), &mut out);
        prop_assert!(out.len() <= MAX_ANSWER);
        prop_assert_eq!(out.is_empty(), outcome == Outcome::Ignore);
        if !out.is_empty() {
            let reply = Message::from_vec(&out);
            prop_assert!(reply.is_ok(), "{:?}", reply);
        }
    }

    /// A good message with some bytes changed: an address that is given is that of the name which hickory reads.
    #[test]
    fn changed_bytes(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let asked = question(&name_of(&[b"api", b"anthropic", b"com"]), 1, 1);
        let mut bytes = with_additional(message(RD, [1, 0, 0, 0], &asked), &opt(1232, 0, &[]));
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let mut out = Vec::new();
        let outcome = respond(&bytes, &POLICY.zone(), &mut out);
        // hickory does not take records of some types without data, which are passed over here.
        if let (Outcome::Answered, Ok(theirs)) = (outcome, Message::from_vec(&bytes)) {
            let reply = Message::from_vec(&out).expect("a reply");
            prop_assert_eq!(&reply.queries, &theirs.queries);
            if let [answer] = &*reply.answers {
                let name = theirs.queries[0].name().to_ascii();
                let address = POLICY.plan.address(&host(name.trim_end_matches('.')));
                prop_assert_eq!(&answer.data, &RData::A(address.into()));
            }
        }
    }
}
