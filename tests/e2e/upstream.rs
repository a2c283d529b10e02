//! Names to servers: what may be dialled, in which order, and what happens when nothing answers.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use system_tests::lab::clienthello::{ClientHello, alert};
use system_tests::lab::dns::Responder;
use system_tests::lab::http::{connect, read_answer};
use system_tests::lab::suite::Test;
use system_tests::lab::world::{NOBODY, RESOLVER, WEB};
use system_tests::lab::{Namespace, Router, run, wait, world};

use crate::tls::send;

pub(crate) const TESTS: &[Test] = &[
    Test::new("600_upstream_forbidden_addresses_are_not_dialled", forbidden_addresses),
    Test::new("601_upstream_good_address_among_bad_ones", good_among_bad),
    Test::new("602_upstream_sniproxy_279_never_itself", never_itself),
    Test::new("603_upstream_every_address_is_tried", every_address),
    Test::new("604_upstream_all_addresses_dead", all_dead),
    Test::new("605_upstream_ipv6", ipv6),
    Test::new("606_upstream_happy_eyeballs", happy_eyeballs),
    Test::new("607_upstream_cname_chains", cname_chains),
    Test::new("608_upstream_names_without_an_address", no_address),
    Test::new("609_upstream_large_answers_come_by_tcp", large_answers),
    Test::new("610_upstream_short_ttl_is_respected", short_ttl),
    Test::new("611_upstream_answers_are_cached", cached),
    Test::limited("612_upstream_resolver_unreachable", 60, resolver_unreachable),
    Test::limited("613_upstream_resolver_silent", 60, resolver_silent),
    Test::new("614_upstream_hosts_file", hosts_file),
    Test::new("615_upstream_no_search_list", no_search_list),
    Test::new("616_upstream_deny_private_and_allow_address", address_options),
    Test::limited("617_upstream_silent_server_is_a_timeout", 60, silent_server),
    Test::new("618_upstream_changed_resolv_conf_is_noticed", changed_resolv_conf),
];

/// The status of a plain GET for `name` through `router`, and the code in the text.
#[track_caller]
fn get(router: &Router, name: &str) -> (u16, String) {
    let mut stream = connect(&world().client, router.at(80));
    stream.set_read_timeout(Some(Duration::from_secs(25))).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    (answer.status, answer.text())
}

#[track_caller]
fn assert_code(router: &Router, name: &str, code: &str) {
    let (status, text) = get(router, name);
    assert!(
        matches!(status, 403 | 502 | 504) && text.contains(code),
        "{name}: {status} {text}"
    );
    router.refused(code, name);
}

/// A router with a resolver of the test's own; the socket is at the resolver's port.
fn with_responder(name: &str, allowlist: &str) -> (Router, Responder, Namespace) {
    let world = world();
    let slot = world.slot();
    let socket = world.origin.enter(|| UdpSocket::bind((slot.address, 53))).unwrap();
    let view = world.router_side.view(name, slot.address);
    (
        world.router(allowlist).in_view(&view).start(),
        Responder::start(socket),
        view,
    )
}

fn forbidden_addresses() {
    let router = world().router(".bad.example\n").start();
    let names = [
        "loopback",
        "loopback-plan",
        "unspecified",
        "metadata",
        "link-local",
        "multicast",
        "broadcast",
        "session-side",
        "egress-side",
        "v6-loopback",
        "v6-unspecified",
        "v6-link-local",
        "v6-multicast",
        "v6-metadata",
        "v6-mapped-loopback",
        "v6-mapped-metadata",
        "v6-mapped-session-side",
        "v6-egress-side",
        "nat64-loopback",
        "nat64-metadata",
        "through-cname",
    ];
    for name in names {
        assert_code(&router, &format!("{name}.bad.example"), "address-denied");
    }
    let (answer, _) = send(router.at(443), &ClientHello::chrome("metadata.bad.example").bytes());
    assert!(alert(&answer).is_some(), "{answer:?}");
    assert!(!router.events().iter().any(|event| event["event"] == "allow"));
}

fn good_among_bad() {
    for _ in 0..5 {
        let router = world().router(".bad.example\n").start();
        assert_eq!(get(&router, "mixed.bad.example").0, 200);
        let event = router.event("allow", |event| event["event"] == "allow");
        assert_eq!(event["upstream"], format!("{WEB}:80"));
    }
}

/// sniproxy #279, #26: a name that leads to the proxy itself makes a loop that ends with the descriptors.
fn never_itself() {
    let (router, responder, _) = with_responder("itself", "loop.example\n");
    responder.set("loop.example", router.address, 60);
    assert_code(&router, "loop.example", "address-denied");
    assert!(router.process.descriptors() < 40);
}

fn every_address() {
    let router = world().router(".dns.example\nsome.example\n").start();
    let start = Instant::now();
    assert_eq!(get(&router, "several.dns.example").0, 200);
    // Two refuse at once, one is silent and has a head start of 250 ms.
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    let event = router.event("allow", |event| event["event"] == "allow");
    assert_eq!(event["upstream"], format!("{WEB}:80"));
}

fn all_dead() {
    let router = world().router(".dns.example\n").start();
    assert_code(&router, "all-dead.dns.example", "upstream-unreachable");
}

fn ipv6() {
    let page = run(
        world()
            .client
            .command("curl")
            .args(["-sS", "https://v6-only.dns.example/"]),
        15,
    )
    .ok();
    assert!(page.contains("from 2001:db8::2"), "{page}");
    world()
        .router
        .event("allow", |event| event["upstream"] == "[2001:db8:1::10]:443");
}

fn happy_eyeballs() {
    let router = world().router(".dns.example\n").start();
    assert_eq!(get(&router, "dual.dns.example").0, 200);
    let event = router.event("allow", |event| event["name"] == "dual.dns.example");
    assert_eq!(event["upstream"], "[2001:db8:1::10]:80", "IPv6 goes first");
    let start = Instant::now();
    assert_eq!(get(&router, "dead-v6.dns.example").0, 200);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    let event = router.event("allow", |event| event["name"] == "dead-v6.dns.example");
    assert_eq!(event["upstream"], format!("{WEB}:80"));
}

fn cname_chains() {
    let router = world().router(".dns.example\n").start();
    assert_eq!(get(&router, "chain1.dns.example").0, 200);
    assert_code(&router, "loop1.dns.example", "resolve-failed");
}

fn no_address() {
    let router = world().router(".dns.example\nmissing.example\n").start();
    for name in ["missing.example", "missing.dns.example", "empty.dns.example"] {
        assert_code(&router, name, "no-address");
    }
}

fn large_answers() {
    let router = world().router("big.dns.example:7000\n").start();
    let mut stream = connect(
        &world().client,
        crate::forward::router_port(&router, "big.dns.example", 7000),
    );
    std::io::Write::write_all(&mut stream, b"x").unwrap();
    std::io::Read::read_exact(&mut stream, &mut [0]).unwrap();
}

fn short_ttl() {
    let (router, responder, _) = with_responder("short-ttl", "moving.example\n");
    responder.set("moving.example", Ipv4Addr::new(203, 0, 113, 61), 1);
    assert_code(&router, "moving.example", "upstream-unreachable");
    responder.set("moving.example", WEB, 1);
    wait::until(5, "the new address to be used", || {
        (get(&router, "moving.example").0 == 200).then_some(())
    });
}

fn cached() {
    let (router, responder, _) = with_responder("cached", "web.example\n");
    responder.set("web.example", WEB, 300);
    assert!(
        responder.asked().is_empty(),
        "asked before any connection: {:?}",
        responder.asked()
    );
    for _ in 0..10 {
        assert_eq!(get(&router, "web.example").0, 200);
    }
    let asked = responder.asked();
    assert!(
        asked
            .iter()
            .all(|(name, kind)| name == "web.example" && matches!(kind, 1 | 28)),
        "{asked:?}"
    );
    assert!(asked.len() <= 2, "{asked:?}");
}

/// Nobody listens: an ICMP error at once.
fn resolver_unreachable() {
    let view = world()
        .router_side
        .view("unreachable-resolver", Ipv4Addr::new(203, 0, 113, 61));
    let router = world().router("web.example\n").in_view(&view).start();
    let start = Instant::now();
    assert_code(&router, "web.example", "resolve-failed");
    assert!(start.elapsed() < Duration::from_secs(18), "{:?}", start.elapsed());
    // The router lives on, and recovers without being told.
    view.write_resolv_conf(&format!("nameserver {RESOLVER}\n"));
    wait::until(20, "recovery", || (get(&router, "web.example").0 == 200).then_some(()));
}

/// Every packet is lost.
fn resolver_silent() {
    let (router, responder, _) = with_responder("silent-resolver", "web.example\n");
    responder.set("web.example", WEB, 60);
    responder.be_silent(true);
    let start = Instant::now();
    let (status, text) = get(&router, "web.example");
    assert!(matches!(status, 502 | 504), "{status} {text}");
    assert!(start.elapsed() < Duration::from_secs(18), "{:?}", start.elapsed());
    responder.be_silent(false);
    wait::until(20, "recovery", || (get(&router, "web.example").0 == 200).then_some(()));
    assert!(system_tests::lab::dns::resolve(&world().client, router.address, "web.example").is_loopback());
}

fn hosts_file() {
    let view = world().router_side.view("hosts-file", Ipv4Addr::new(203, 0, 113, 61));
    view.write_hosts(&format!(
        "127.0.0.1 localhost bad.example\n{WEB} internal.example Alias.example\n"
    ));
    let router = world()
        .router("internal.example\nalias.example\nbad.example\n")
        .in_view(&view)
        .start();
    assert_eq!(get(&router, "internal.example").0, 200);
    assert_eq!(get(&router, "alias.example").0, 200);
    assert_code(&router, "bad.example", "address-denied");
}

/// A name is asked for as it was allowed: a search list would make another name of it.
fn no_search_list() {
    let (router, responder, view) = with_responder("search-list", "web.example\nintranet\n");
    view.write_resolv_conf(
        &std::fs::read_to_string("/run/lab/ns/search-list/resolv.conf")
            .unwrap()
            .replace(
                "nameserver",
                "search evil.example corp.example\noptions ndots:5\nnameserver",
            ),
    );
    responder.set("web.example.evil.example", WEB, 60);
    responder.set("intranet.evil.example", WEB, 60);
    for name in ["web.example", "intranet"] {
        assert_code(&router, name, "no-address");
    }
    let asked = responder.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|(name, _)| !name.contains("evil")),
        "{asked:?}"
    );
}

fn address_options() {
    let private = world().router(".dns.example\n").args(&["--deny-private"]).start();
    assert_code(&private, "private.dns.example", "address-denied");
    assert_eq!(get(&private, "chain1.dns.example").0, 200);
    let view = world().router_side.view("address-options", RESOLVER);
    view.write_hosts("127.0.0.1 here.example\n169.254.1.2 there.example\n");
    let allowed = ["--allow-address", "127.0.0.0/8"];
    let router = world()
        .router("here.example\nthere.example\n")
        .args(&allowed)
        .in_view(&view)
        .start();
    // Nothing listens on 127.0.0.1:80 of the router, but it was dialled.
    assert_code(&router, "here.example", "upstream-unreachable");
    assert_code(&router, "there.example", "address-denied");
}

fn silent_server() {
    let world = world();
    // An address on the link that answers ARP and nothing else: packets to it are dropped.
    let view = world.router_side.view("silent-server", RESOLVER);
    view.write_hosts(&format!("{NOBODY} silent.example\n"));
    world
        .router_side
        .ip(&format!("neigh replace {NOBODY} lladdr 02:00:00:00:00:99 dev eth0"));
    let router = world.router("silent.example\n").in_view(&view).start();
    let start = Instant::now();
    let (status, text) = get(&router, "silent.example");
    assert_eq!(status, 504, "{text}");
    assert!(text.contains("upstream-timeout"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(16), "{:?}", start.elapsed());
    world.router_side.ip(&format!("neigh del {NOBODY} dev eth0"));
}

fn changed_resolv_conf() {
    let view = world().router_side.view("changed", RESOLVER);
    let router = world()
        .router("web.example\nonly-there.example\n")
        .in_view(&view)
        .start();
    assert_eq!(get(&router, "web.example").0, 200);
    assert_code(&router, "only-there.example", "no-address");
    let slot = world().slot();
    let socket = world().origin.enter(|| UdpSocket::bind((slot.address, 53))).unwrap();
    let responder = Responder::start(socket);
    responder.set("only-there.example", WEB, 60);
    view.write_resolv_conf(&format!("nameserver {}\n", slot.address));
    assert_eq!(get(&router, "only-there.example").0, 200);
}
