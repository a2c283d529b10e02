//! Every reply is short, is one that hickory-proto reads, and gives addresses to allowed names alone.
#![no_main]

use std::sync::LazyLock;

use allowlist::{Allowlist, HostName, Plan, Service};
use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::RData;
use libfuzzer_sys::fuzz_target;
use wire::dns::{AnswerAddress, MAX_ANSWER, Outcome, Zone, respond};

static POLICY: LazyLock<(Allowlist, Plan)> = LazyLock::new(|| {
    let parsed = Allowlist::parse(b"api.anthropic.com\n.example.com\na.b:5432\n", "fuzz");
    let allowlist = parsed.result.expect("a good allowlist");
    let plan = Plan::new(&allowlist).expect("a plan");
    (allowlist, plan)
});

fuzz_target!(|query: &[u8]| {
    let (allowlist, plan) = &*POLICY;
    let zone = Zone {
        allowlist,
        plan,
        answer: AnswerAddress::Loopback,
    };
    let mut out = Vec::new();
    let outcome = respond(query, &zone, &mut out);
    assert!(out.len() <= MAX_ANSWER);
    assert_eq!(out.is_empty(), outcome == Outcome::Ignore);
    if out.is_empty() {
        return;
    }
    let reply = Message::from_vec(&out).expect("hickory reads the reply");
    assert_eq!(out.get(..2), query.get(..2));
    assert_eq!(reply.metadata.message_type, MessageType::Response);
    assert!(!reply.metadata.truncation);
    for answer in &*reply.answers {
        let name = answer.name.to_ascii();
        match &answer.data {
            RData::A(address) => {
                let name = HostName::from_wire(name.trim_end_matches('.').as_bytes()).expect("a host name");
                assert!(allowlist.decide(&name, Service::Name).is_ok());
                assert_eq!(address.0, plan.address(&name));
            }
            RData::PTR(_) => assert!(name.to_ascii_lowercase().ends_with(".127.in-addr.arpa.")),
            other => panic!("{other} is never given"),
        }
    }
    match outcome {
        Outcome::Rejected(code) => assert_eq!(u16::from(reply.metadata.response_code), u16::from(code)),
        Outcome::Refused { .. } => assert!(reply.answers.is_empty()),
        _ => assert_eq!(reply.metadata.response_code, ResponseCode::NoError),
    }
});
