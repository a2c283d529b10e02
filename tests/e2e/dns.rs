//! What the router says over DNS.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::{RData, RecordType};
use system_tests::lab::dns::{
    addresses, ask_tcp, ask_udp, decode, framed, question, question_with, read_framed, resolve, with_opt,
};
use system_tests::lab::suite::Test;
use system_tests::lab::world::ROUTER;
use system_tests::lab::{http, run, world};

pub(crate) const TESTS: &[Test] = &[
    Test::new("100_dns_allowed_name_has_its_loopback_address", allowed_name),
    Test::new("101_dns_every_client_library_resolves", client_libraries),
    Test::new("102_dns_musl_accepts_a_name_without_aaaa", musl),
    Test::new("103_dns_other_types_are_nodata_with_soa", other_types),
    Test::new("104_dns_parents_of_allowed_names_are_nodata", parents),
    Test::new("105_dns_everything_else_is_nxdomain_and_blocked", everything_else),
    Test::new("106_dns_suffix_entries_end_at_a_label", suffixes),
    Test::new("107_dns_question_is_echoed_with_its_case", case_is_echoed),
    Test::new("108_dns_opt_if_and_only_if_asked", opt),
    Test::new("109_dns_any_is_minimal", any),
    Test::new("110_dns_other_opcodes_classes_and_transfers", refused_questions),
    Test::new("111_dns_malformed_questions_are_formerr", malformed),
    Test::new("112_dns_ptr_of_a_planned_address_is_its_name", pointers),
    Test::new("113_dns_tcp_pipelining_and_partial_messages", tcp),
    Test::new("114_dns_podman_23128_search_domains", search_domains),
    Test::new("115_dns_longest_name_fits_without_edns", longest_name),
    Test::new("116_dns_never_forwards", never_forwards),
    Test::new("117_dns_answer_option", answer_option),
    Test::new("118_dns_same_address_in_every_session", same_address),
    Test::new("119_dns_idn_and_underscore", idn),
    Test::new("120_dns_go_15434_is_no_lame_referral", lame_referral),
];

const UDP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(ROUTER), 53);

/// Asks the shared router both ways; the answers must be the same.
#[track_caller]
fn ask(question: &[u8]) -> Message {
    let client = &world().client;
    let udp = ask_udp(client, UDP, question).expect("an answer over UDP");
    let tcp = ask_tcp(client, UDP, question).expect("an answer over TCP");
    assert_eq!(udp, tcp, "UDP and TCP differ");
    decode(&udp)
}

#[track_caller]
fn assert_soa(message: &Message) {
    let soa = message.authorities.iter().find_map(|record| match &record.data {
        RData::SOA(soa) => Some((record.ttl, soa.minimum)),
        _ => None,
    });
    assert_eq!(soa, Some((10, 10)), "TTL and minimum of the SOA: {message}");
    assert!(message.answers.is_empty(), "{message}");
    assert!(message.metadata.authoritative, "{message}");
}

fn allowed_name() {
    let message = ask(&question("web.example", RecordType::A));
    assert_eq!(message.metadata.response_code, ResponseCode::NoError);
    assert!(
        message.metadata.authoritative && message.metadata.recursion_available,
        "{message}"
    );
    assert!(!message.metadata.truncation);
    assert_eq!(message.answers.len(), 1, "{message}");
    assert_eq!(message.answers[0].ttl, 30);
    let address = addresses(&message)[0];
    assert!(
        address.octets()[0] == 127 && (64..128).contains(&address.octets()[1]),
        "127.64.0.0/10, not {address}"
    );
    // RA follows RD.
    let mut iterative = question("web.example", RecordType::A);
    iterative[2] = 0;
    let message = ask(&iterative);
    assert!(
        !message.metadata.recursion_desired && !message.metadata.recursion_available,
        "{message}"
    );
    let short = run(world().client.command("dig").args(["+short", "web.example"]), 10).ok();
    assert_eq!(short.trim(), address.to_string());
}

fn client_libraries() {
    let address = resolve(&world().client, ROUTER, "web.example").to_string();
    let python = "import socket; print({a[4][0] for a in socket.getaddrinfo('web.example', 443)})";
    let node = "const dns = require('dns');
        dns.lookup('web.example', {all: true}, (e, a) => console.log(e || JSON.stringify(a)));
        dns.resolve4('web.example', (e, a) => console.log(e || a));
        dns.resolve6('web.example', (e) => console.log('v6', e.code));
        dns.lookup('forbidden.example', (e) => console.log('forbidden', e.code));";
    let client = &world().client;
    let getent = run(client.command("getent").args(["ahosts", "web.example"]), 10).ok();
    assert!(
        getent.lines().all(|line| line.starts_with(&address)) && !getent.is_empty(),
        "{getent}"
    );
    let python = run(client.command("/usr/bin/python3").args(["-c", python]), 10).ok();
    assert_eq!(python.trim(), format!("{{'{address}'}}"));
    let node = run(client.command("node").args(["-e", node]), 10).ok();
    for line in [
        &format!("[{{\"address\":\"{address}\",\"family\":4}}]"),
        &format!("[ '{address}' ]"),
        "v6 ENODATA",
        "forbidden ENOTFOUND",
    ] {
        assert!(node.contains(line), "{line} in {node}");
    }
    // getent's exit code 2 is "not found", at once.
    assert_eq!(
        run(client.command("getent").args(["ahosts", "forbidden.example"]), 3).code(),
        2
    );
}

/// docker/for-mac #5088, slackhq/nebula #1668, envoy #42590 and others: NXDOMAIN for AAAA makes musl give up the name.
fn musl() {
    let program = "/run/lab/getaddrinfo";
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/getaddrinfo.c");
    run(Command::new("musl-gcc").args(["-static", "-o", program, source]), 20).ok();
    let found = run(
        world().client.command(program).args(["web.example", "x.slot.example"]),
        10,
    )
    .ok();
    let expected = ["web.example", "x.slot.example"]
        .map(|name| format!("{name} {}\n", resolve(&world().client, ROUTER, name)))
        .concat();
    assert_eq!(found, expected);
    assert!(
        run(world().client.command(program).arg("forbidden.example"), 5)
            .fails()
            .contains("does not resolve")
    );
}

fn other_types() {
    // AAAA, MX, TXT, SRV, NAPTR, SVCB, HTTPS, CAA, NS, SOA, CNAME, PTR, and one that nobody knows.
    for kind in [28, 15, 16, 33, 35, 64, 65, 257, 2, 5, 12, 65_280] {
        for name in ["web.example", "x.slot.example", "slot.example"] {
            let message = ask(&question_with(name, kind, 1));
            assert_eq!(
                message.metadata.response_code,
                ResponseCode::NoError,
                "{name} type {kind}"
            );
            assert_soa(&message);
        }
    }
}

fn parents() {
    for name in ["example", "deep.example", "c.deep.example", "b.c.deep.example"] {
        for kind in [RecordType::A, RecordType::AAAA] {
            let message = ask(&question(name, kind));
            assert_eq!(message.metadata.response_code, ResponseCode::NoError, "{name}");
            assert_soa(&message);
        }
    }
}

fn everything_else() {
    for name in [
        "forbidden.example",
        "com",
        "web.example.com",
        "x.web.example",
        "localhost.example",
        "1.2.3.4",
    ] {
        for kind in [RecordType::A, RecordType::AAAA, RecordType::HTTPS, RecordType::TXT] {
            let plain = ask(&question(name, kind));
            assert_eq!(plain.metadata.response_code, ResponseCode::NXDomain, "{name}");
            assert_soa(&plain);
            assert!(plain.edns.is_none(), "{name}: OPT without being asked");
        }
    }
    let dig = run(world().client.command("dig").args(["+edns", "forbidden.example"]), 10).ok();
    assert!(
        dig.contains("EDE: 15 (Blocked)") && dig.contains("status: NXDOMAIN"),
        "{dig}"
    );
    let event = world().router.refused("name-not-allowed", "forbidden.example");
    assert_eq!(event["protocol"], "dns");
}

/// tinyproxy #627: a suffix that matched in the middle of a label.
fn suffixes() {
    let code = |name: &str| ask(&question(name, RecordType::A)).metadata.response_code;
    for name in [
        "slot.example",
        "x.slot.example",
        "a.b.c.slot.example",
        "xn--x.slot.example",
        "_x.slot.example",
    ] {
        assert_eq!(code(name), ResponseCode::NoError, "{name}");
    }
    for name in [
        "evilslot.example",
        "x.evilslot.example",
        "slot.example.evil",
        "xslot.example",
        "example.slot",
    ] {
        assert_eq!(code(name), ResponseCode::NXDomain, "{name}");
    }
    let address = resolve(&world().client, ROUTER, "any.slot.example");
    assert!(
        address.octets()[0] == 127 && address.octets()[1] >= 128,
        "127.128.0.0/9, not {address}"
    );
}

/// unbound's and BIND's 0x20: an answer whose question differs in case is dropped.
fn case_is_echoed() {
    for name in ["WeB.eXaMpLe", "X.SLOT.EXAMPLE", "FoRbIdDeN.example"] {
        let question = with_opt(question(name, RecordType::A), 0, false);
        let answer = ask_udp(&world().client, UDP, &question).unwrap();
        let end = question.len() - 11;
        assert_eq!(answer[12..end], question[12..end], "{name}");
    }
    let lower = resolve(&world().client, ROUTER, "mixed.example");
    assert_eq!(resolve(&world().client, ROUTER, "MIXED.EXAMPLE"), lower);
}

/// 0xERR0R/blocky #2240: a missing OPT makes systemd-resolved doubt the server.
fn opt() {
    let plain = question("web.example", RecordType::A);
    assert!(ask(&plain).edns.is_none());
    let edns = ask(&with_opt(plain.clone(), 0, true)).edns.expect("an OPT for an OPT");
    assert!(edns.max_payload() >= 512 && edns.version() == 0, "{edns}");
    assert!(edns.flags().dnssec_ok, "RFC 3225: DO is copied");
    // An option that nobody knows is ignored (RFC 6891 section 6.1.2).
    let mut unknown = with_opt(plain.clone(), 0, false);
    let length = unknown.len();
    unknown[length - 1] = 6;
    unknown.extend([0xff, 0x11, 0, 2, 1, 2]);
    assert_eq!(ask(&unknown).answers.len(), 1);
    let future = ask(&with_opt(plain.clone(), 1, false));
    // 16 is BADVERS here; hickory shows it as BADSIG, which has the same number in TSIG.
    assert_eq!(u16::from(future.metadata.response_code), 16, "{future}");
    assert!(future.answers.is_empty() && future.edns.is_some());
    // Two OPT records (RFC 6891 section 6.1.1: FORMERR).
    let twice = ask(&with_opt(with_opt(plain, 0, false), 0, false));
    assert_eq!(twice.metadata.response_code, ResponseCode::FormErr, "{twice}");
}

/// RFC 8482.
fn any() {
    let message = ask(&question("web.example", RecordType::ANY));
    assert_eq!(message.metadata.response_code, ResponseCode::NoError);
    assert_eq!(message.answers.len(), 1, "{message}");
    assert_eq!(
        ask(&question("forbidden.example", RecordType::ANY))
            .metadata
            .response_code,
        ResponseCode::NXDomain
    );
}

fn refused_questions() {
    for opcode in [1, 2, 4, 5, 6, 15] {
        let mut other = question("web.example", RecordType::A);
        other[2] |= opcode << 3;
        let answer = ask(&other);
        assert_eq!(answer.metadata.response_code, ResponseCode::NotImp, "opcode {opcode}");
        assert_eq!(answer.metadata.op_code, OpCode::from_u8(opcode), "opcode {opcode}");
    }
    // CH, HS, NONE, ANY
    for class in [3, 4, 254, 255] {
        let message = ask(&question_with("web.example", 1, class));
        assert_eq!(message.metadata.response_code, ResponseCode::Refused, "class {class}");
    }
    // IXFR, AXFR; MAILB and MAILA are long obsolete.
    for kind in [251, 252] {
        let message = ask(&question_with("example", kind, 1));
        assert_eq!(message.metadata.response_code, ResponseCode::Refused, "type {kind}");
    }
    let version = run(world().client.command("dig").args(["version.bind", "CH", "TXT"]), 10).ok();
    assert!(version.contains("status: REFUSED"), "{version}");
}

fn malformed() {
    let good = question("web.example", RecordType::A);
    let counts = |questions: u16| {
        let mut bytes = good.clone();
        bytes[4..6].copy_from_slice(&questions.to_be_bytes());
        bytes
    };
    let mut twice = counts(2);
    twice.extend_from_within(12..good.len());
    let name = |bytes: &[u8]| [&good[..12], bytes, &[0, 1, 0, 1]].concat();
    let label = [&[63][..], &[b'x'; 63]].concat();
    let cases: [(&str, Vec<u8>); 11] = [
        ("no question", counts(0)[..12].to_vec()),
        ("QDCOUNT 0 with a question", counts(0)),
        ("QDCOUNT 2", twice),
        ("QDCOUNT 65535, header only", counts(65_535)[..12].to_vec()),
        ("QDCOUNT 65535", counts(65_535)),
        ("a pointer to itself", name(&[0xc0, 12])),
        ("a pointer ahead", name(&[0xc0, 200])),
        ("a label of 64", name(&[&[64][..], &[b'x'; 64], &[0]].concat())),
        ("a name of 320", name(&[label.repeat(5), vec![0]].concat())),
        ("cut in the name", good[..18].to_vec()),
        ("cut in the class", good[..good.len() - 1].to_vec()),
    ];
    for (what, bytes) in cases {
        let answer = ask_udp(&world().client, UDP, &bytes).unwrap_or_else(|| panic!("{what}: no answer"));
        assert!(answer.len() >= 12 && answer[..2] == [0x12, 0x34], "{what}: {answer:?}");
        assert_eq!(answer[2] & 0x80, 0x80, "{what}: QR");
        assert_eq!(answer[3] & 0x0f, 1, "{what}: FORMERR, not {}", answer[3] & 0x0f);
    }
    // An answer is no question, and less than a header is nothing: silence, or two servers could talk for ever.
    let client = world().client.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut answer = good.clone();
    answer[2] |= 0x80;
    for silent in [&answer[..], &good[..11], &good[..2], &[]] {
        client.send_to(silent, UDP).unwrap();
        assert!(client.recv_from(&mut [0; 512]).is_err(), "an answer to {silent:?}");
    }
    assert_eq!(ask(&good).answers.len(), 1);
}

fn pointers() {
    let pointer = |address: Ipv4Addr| {
        let [a, b, c, d] = address.octets();
        ask(&question(&format!("{d}.{c}.{b}.{a}.in-addr.arpa"), RecordType::PTR))
    };
    let message = pointer(resolve(&world().client, ROUTER, "web.example"));
    assert_eq!(message.answers.len(), 1, "{message}");
    assert!(
        matches!(&message.answers[0].data, RData::PTR(name) if name.0.to_string() == "web.example."),
        "{message}"
    );
    for address in [
        Ipv4Addr::LOCALHOST,
        Ipv4Addr::new(127, 64, 0, 0),
        Ipv4Addr::new(203, 0, 113, 10),
    ] {
        assert_eq!(
            pointer(address).metadata.response_code,
            ResponseCode::NXDomain,
            "{address}"
        );
    }
    let host = run(
        world()
            .client
            .command("getent")
            .args(["hosts", &message_address("web.example")]),
        10,
    )
    .ok();
    assert!(host.contains("web.example"), "{host}");
}

fn message_address(name: &str) -> String {
    resolve(&world().client, ROUTER, name).to_string()
}

fn tcp() {
    let mut stream = http::connect(&world().client, UDP);
    let names: Vec<String> = (0..40).map(|n| format!("p{n}.slot.example")).collect();
    let questions: Vec<u8> = names
        .iter()
        .zip(0_u8..)
        .flat_map(|(name, id)| {
            let mut question = question(name, RecordType::A);
            question[1] = id;
            framed(&question)
        })
        .collect();
    stream.write_all(&questions).unwrap();
    let mut seen: Vec<u8> = names
        .iter()
        .map(|_| decode(&read_framed(&mut stream).unwrap()))
        .map(|answer| {
            assert_eq!(answer.answers.len(), 1);
            answer.metadata.id.to_be_bytes()[1]
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..40).collect::<Vec<_>>());
    // The same connection, one byte at a time.
    for byte in framed(&question("web.example", RecordType::A)) {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(decode(&read_framed(&mut stream).unwrap()).answers.len(), 1);
    // A client that is done writing still gets its answers.
    stream
        .write_all(&framed(&question("web.example", RecordType::A)))
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(decode(&read_framed(&mut stream).unwrap()).answers.len(), 1);
    assert_eq!(http::read_to_end(&mut stream), (Vec::new(), http::End::Clean));
}

fn search_domains() {
    let view = world().client.view("search", ROUTER);
    view.write_resolv_conf(&format!(
        "nameserver {ROUTER}\nsearch dns.podman corp.example\noptions ndots:5\n"
    ));
    let found = run(view.command("getent").args(["ahostsv4", "web.example"]), 3).ok();
    assert!(found.starts_with(&message_address("web.example")), "{found}");
    assert_eq!(
        run(view.command("getent").args(["ahosts", "forbidden.example"]), 3).code(),
        2
    );
}

fn longest_name() {
    let label = "x".repeat(63);
    // 253 characters: three full labels, and the rest of the fourth.
    let name = format!("{label}.{label}.{label}.{}.slot.example", &label[..48]);
    assert_eq!(name.len(), 253);
    for kind in [RecordType::A, RecordType::AAAA] {
        let answer = ask_udp(&world().client, UDP, &question(&name, kind)).unwrap();
        assert!(answer.len() <= 512, "{} bytes", answer.len());
        assert_eq!(decode(&answer).metadata.response_code, ResponseCode::NoError);
    }
    // The same length off the list.
    let other = name.replace("slot.example", "slots.exampl");
    let answer = ask_udp(&world().client, UDP, &question(&other, RecordType::A)).unwrap();
    assert!(answer.len() <= 512, "{} bytes", answer.len());
    assert_eq!(decode(&answer).metadata.response_code, ResponseCode::NXDomain);
}

/// moby CVE-2024-29018, aardvark-dns #447: queries of a closed network that leave it.
fn never_forwards() {
    let world = world();
    let slot = world.slot();
    let resolver = world.origin.enter(|| UdpSocket::bind((slot.address, 53))).unwrap();
    resolver.set_nonblocking(true).unwrap();
    let view = world.router_side.view("never-forwards", slot.address);
    let router = world.router("web.example\n.slot.example\n").in_view(&view).start();
    for name in [
        "web.example",
        "x.slot.example",
        "forbidden.example",
        "a.b.c.d",
        "com",
        "1.0.0.127.in-addr.arpa",
    ] {
        for kind in [
            RecordType::A,
            RecordType::AAAA,
            RecordType::TXT,
            RecordType::NS,
            RecordType::PTR,
        ] {
            assert!(ask_udp(&world.client, router.at(53), &question(name, kind)).is_some());
            ask_tcp(&world.client, router.at(53), &question(name, kind)).unwrap();
        }
    }
    let received = resolver.recv_from(&mut [0; 512]);
    assert!(received.is_err(), "the router asked its resolver: {received:?}");
}

fn answer_option() {
    let world = world();
    let setup = world.router("web.example\n.slot.example\n");
    let address = setup.address();
    let router = setup.args(&["--answer", &address.to_string()]).start();
    assert_eq!(resolve(&world.client, router.address, "web.example"), address);
    assert_eq!(resolve(&world.client, router.address, "x.slot.example"), address);
    // A pod without a forwarder.
    let pod = world.pod(router.address);
    let page = run(
        pod.command("curl")
            .args(["-sS", "https://web.example/", "http://web.example/"]),
        10,
    )
    .ok();
    assert_eq!(page.matches("web says hello").count(), 2, "{page}");
    let refused = run(pod.command("curl").args(["-sS", "https://forbidden.example/"]), 10).fails();
    assert!(refused.contains("Could not resolve host"), "{refused}");
}

fn same_address() {
    let world = world();
    let other = world
        .router("# other names first\nzzz.example\n.other.example\nweb.example\n.slot.example\n")
        .start();
    for name in ["web.example", "x.slot.example"] {
        assert_eq!(
            resolve(&world.client, other.address, name),
            resolve(&world.client, ROUTER, name),
            "{name}"
        );
    }
}

fn idn() {
    let page = run(
        world()
            .client
            .command("curl")
            .args(["-sS", "https://b\u{fc}cher.example/"]),
        10,
    )
    .ok();
    assert!(page.contains("xn--bcher-kva.example"), "{page}");
    assert!(resolve(&world().client, ROUTER, "under_score.example").is_loopback());
}

/// golang/go #15434, #12778, #64783: Go takes an answer with neither AA nor RA, no answer records and no SOA for a
/// "lame referral" and tries the next server. Its resolver sends exactly these questions.
fn lame_referral() {
    for kind in [RecordType::A, RecordType::AAAA] {
        for name in ["web.example", "example", "forbidden.example"] {
            let message = ask(&with_opt(question(name, kind), 0, false));
            let lame = message.metadata.response_code == ResponseCode::NoError
                && !message.metadata.authoritative
                && !message.metadata.recursion_available
                && message.answers.is_empty();
            assert!(
                !lame && message.metadata.authoritative && message.metadata.recursion_available,
                "{name}: {message}"
            );
        }
    }
}
