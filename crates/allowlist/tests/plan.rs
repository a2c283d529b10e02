//! The plan: fixed for ever, the same for everyone, and nothing changes hands.

// Clippy's exception for tests does not reach the helpers beside them.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use allowlist::{Allowlist, HostName, Plan, PlanError};
use proptest::prelude::*;

fn list(text: &str) -> Allowlist {
    Allowlist::parse(text.as_bytes(), "f")
        .result
        .unwrap_or_else(|faults| panic!("{faults}"))
}

fn name(text: &str) -> HostName {
    HostName::from_wire(text.as_bytes()).unwrap()
}

/// These values must never change: sessions of different versions, router and forwarder share them.
#[test]
fn known_values() {
    let plan = Plan::new(&list(
        "github.com:22\nssh.github.com:443\napi.anthropic.com\n.example.com\n",
    ))
    .unwrap();
    for (host, address) in [
        ("github.com", [127, 90, 222, 144]),
        ("ssh.github.com", [127, 117, 127, 242]),
    ] {
        let address = Ipv4Addr::from(address);
        assert_eq!(plan.address(&name(host)), address);
        assert_eq!(plan.name_at(address), Some(&name(host)));
    }
    let forwards: Vec<_> = plan
        .forwards()
        .iter()
        .map(|forward| (forward.name.as_str(), forward.port, forward.router_port, forward.line))
        .collect();
    assert_eq!(
        forwards,
        [("github.com", 22, 11334, 1), ("ssh.github.com", 443, 25152, 2)]
    );
    assert!(
        plan.forwards()
            .iter()
            .all(|forward| forward.address == plan.address(&forward.name))
    );
}

#[test]
fn names_under_a_suffix_have_an_address_and_no_table() {
    let plan = Plan::new(&list(".example.com\n")).unwrap();
    for number in 0..1000 {
        let address = plan.address(&name(&format!("n{number}.example.com")));
        let [first, second, _, last] = address.octets();
        assert!(first == 127 && second >= 128 && !matches!(last, 0 | 255), "{address}");
        assert_eq!(plan.name_at(address), None);
    }
}

#[test]
fn many_names_have_distinct_addresses_in_their_range() {
    let text: String = (0..20_000).map(|number| format!("n{number}.example\n")).collect();
    let list = list(&text);
    let plan = Plan::new(&list).unwrap();
    let mut seen = HashSet::new();
    for entry in list.entries() {
        let address = plan.address(entry.name());
        let [first, second, _, last] = address.octets();
        assert!(
            first == 127 && (64..128).contains(&second) && !matches!(last, 0 | 255),
            "{address}"
        );
        assert!(seen.insert(address));
        assert_eq!(plan.name_at(address), Some(entry.name()));
    }
    for address in [
        "127.0.0.1",
        "127.64.0.0",
        "127.127.255.255",
        "127.128.0.1",
        "126.64.0.1",
        "255.255.255.255",
    ] {
        assert_eq!(plan.name_at(address.parse().unwrap()), None);
    }
}

#[test]
fn ports_fill_the_range_and_then_run_out() {
    let text: String = (1..=55_536).map(|port| format!("x.com:{port}\n")).collect();
    let full = Plan::new(&list(&text)).unwrap();
    let ports: HashSet<_> = full.forwards().iter().map(|forward| forward.router_port).collect();
    assert_eq!(ports.len(), 55_536);
    assert!(ports.iter().all(|&port| port >= 10_000));
    let one_more = Plan::new(&list(&format!("{text}x.com:60000\n")));
    assert_eq!(one_more.unwrap_err(), PlanError::NoPort { forwards: 55_537 });
    // A removed entry's port is not given to another, however few are left; it gets it back itself.
    let other = full.successor(&list("y.com:1\n"));
    assert_eq!(other.unwrap_err(), PlanError::NoPort { forwards: 55_537 });
    let nothing = full.successor(&list("y.com\n")).unwrap();
    assert_eq!(nothing.forwards(), []);
    let back = nothing.successor(&list("x.com:9\n")).unwrap();
    assert_eq!(back.forwards()[0].router_port, full.forwards()[8].router_port);
}

#[test]
fn ports_stay_below_those_of_the_kernels_choice_while_there_is_room() {
    let text: String = (1..=22_768).map(|port| format!("x.com:{port}\n")).collect();
    let plan = Plan::new(&list(&text)).unwrap();
    assert!(
        plan.forwards()
            .iter()
            .all(|forward| (10_000..32_768).contains(&forward.router_port))
    );
}

#[test]
fn another_entry_moves_nothing_it_does_not_collide_with() {
    let text: String = (0..40).map(|number| format!("n{number}.example:22\n")).collect();
    let (one, two) = (list(&text), list(&format!("other.example:22\n{text}")));
    let (one, two) = (Plan::new(&one).unwrap(), Plan::new(&two).unwrap());
    for (one, two) in one.forwards().iter().zip(&two.forwards()[1..]) {
        assert_eq!((one.router_port, one.address), (two.router_port, two.address));
    }
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}\\.com", "\\.[a-c]{1,2}\\.com", "[a-c]{1,2}\\.com:[1-9]"]
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(line(), 0..30)
}

/// What belongs to whom.
fn holdings(list: &Allowlist, plan: &Plan) -> (HashMap<String, Ipv4Addr>, HashMap<(String, u16), u16>) {
    let exact = list.entries().filter(|entry| entry.rule() == allowlist::Rule::Exact);
    let addresses = exact
        .map(|entry| (entry.name().to_string(), plan.address(entry.name())))
        .collect();
    let ports = plan
        .forwards()
        .iter()
        .map(|forward| ((forward.name.to_string(), forward.port), forward.router_port))
        .collect();
    (addresses, ports)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn order_of_lines_does_not_matter((lines, shuffled) in lines().prop_flat_map(|lines| (Just(lines.clone()), Just(lines).prop_shuffle()))) {
        let (one, two) = (list(&lines.join("\n")), list(&shuffled.join("\n")));
        prop_assert_eq!(holdings(&one, &Plan::new(&one).unwrap()), holdings(&two, &Plan::new(&two).unwrap()));
    }

    #[test]
    fn nothing_changes_hands_over_reloads(versions in prop::collection::vec(lines(), 1..6)) {
        let mut plan = Plan::default();
        let mut address_owners: HashMap<Ipv4Addr, String> = HashMap::new();
        let mut port_owners: HashMap<u16, (String, u16)> = HashMap::new();
        let mut all_addresses: HashMap<String, Ipv4Addr> = HashMap::new();
        let mut all_ports: HashMap<(String, u16), u16> = HashMap::new();
        for lines in versions {
            let list = list(&lines.join("\n"));
            plan = plan.successor(&list).unwrap();
            let (addresses, ports) = holdings(&list, &plan);
            for (name, address) in addresses {
                prop_assert_eq!(address_owners.entry(address).or_insert_with(|| name.clone()), &name);
                prop_assert_eq!(*all_addresses.entry(name).or_insert(address), address);
            }
            for (forward, port) in ports {
                prop_assert_eq!(port_owners.entry(port).or_insert_with(|| forward.clone()), &forward);
                prop_assert_eq!(*all_ports.entry(forward).or_insert(port), port);
            }
            let live = all_addresses.iter().filter(|(_, address)| plan.name_at(**address).is_some()).count();
            let exact: HashSet<_> = list.entries().filter(|e| e.rule() == allowlist::Rule::Exact).map(|e| e.name()).collect();
            prop_assert_eq!(live, exact.len());
        }
    }
}
