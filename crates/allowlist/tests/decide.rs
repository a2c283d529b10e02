//! What is allowed, and what only looks so.

// Clippy's exception for tests does not reach the helpers beside them.
#![allow(clippy::panic, clippy::unwrap_used)]

use allowlist::{Allowlist, HostName, NameError, Refusal, Rule, Service};
use proptest::prelude::*;

fn list(text: &str) -> Allowlist {
    Allowlist::parse(text.as_bytes(), "f")
        .result
        .unwrap_or_else(|faults| panic!("{faults}"))
}

fn name(text: &str) -> HostName {
    HostName::from_wire(text.as_bytes()).unwrap()
}

#[test]
fn decisions() {
    use Service::{Name, Port, Web};
    let list = list("a.com\n.b.com\nc.com:5432\nd.c.com:443\n.x.b.com\ny.x.b.com\na.com:80\n");
    let no_name = Err(Refusal::NameNotAllowed);
    let no_port = Err(Refusal::PortNotAllowed);
    for (host, service, expected) in [
        ("a.com", Name, Ok(1)),
        ("A.com", Web, Ok(1)),
        ("w.a.com", Web, no_name),
        ("a.com", Port(80), Ok(7)),
        ("a.com", Port(443), no_port),
        ("b.com", Web, Ok(2)),
        ("z.y.b.com", Web, Ok(2)),
        ("b.com", Port(22), no_port),
        ("c.com", Web, Ok(3)),
        ("c.com", Port(5432), Ok(3)),
        ("c.com", Port(5433), no_port),
        ("w.c.com", Port(5432), no_name),
        ("d.c.com", Port(443), Ok(4)),
        ("x.b.com", Web, Ok(5)),
        ("w.x.b.com", Web, Ok(5)),
        ("y.x.b.com", Web, Ok(6)),
        ("w.y.x.b.com", Web, Ok(5)),
        ("com", Name, no_name),
    ] {
        let verdict = list.decide(&name(host), service).map(|allowed| allowed.entry().line());
        assert_eq!(verdict, expected, "{host} {service:?}");
    }
}

#[test]
fn an_empty_list_denies_everything() {
    // CVE-2025-66479: an empty list was taken for no restriction.
    let list = list("# nothing\n");
    assert!(list.is_empty());
    assert_eq!(list.decide(&name("x.com"), Service::Name), Err(Refusal::NameNotAllowed));
    assert!(!list.has_names_below(&name("com")));
}

#[test]
fn tinyproxy_627_suffix_confusion() {
    let list = list(".x.com\n");
    for denied in ["evilx.com", "x.com.evil", "xx.com", "x.comm", "com", "a.x.com.evil.net"] {
        assert!(list.decide(&name(denied), Service::Web).is_err(), "{denied}");
    }
}

#[test]
fn smokescreen_cve_2022_24825_case_and_dot() {
    let list = list("API.Example.COM.\n");
    assert!(list.decide(&name("aPi.eXample.com"), Service::Web).is_ok());
    assert_eq!(HostName::from_wire(b"api.example.com."), Err(NameError::TrailingDot));
    assert_eq!(HostName::from_wire(b"api..example.com"), Err(NameError::EmptyLabel));
    assert_eq!(
        HostName::from_user("api.example.com.").unwrap(),
        name("api.example.com")
    );
    assert_eq!(HostName::from_user("api.example.com.."), Err(NameError::EmptyLabel));
}

#[test]
fn smokescreen_cve_2022_29188_brackets() {
    for bytes in [&b"[api.example.com]"[..], b"[::1]", b"[127.0.0.1]"] {
        assert!(HostName::from_wire(bytes).is_err());
    }
}

#[test]
fn tcpproxy_3_mixed_case_in_the_list() {
    assert!(
        list(".Example.COM")
            .decide(&name("www.EXAMPLE.com"), Service::Web)
            .is_ok()
    );
}

#[test]
fn names_from_a_user() {
    for (text, expected) in [
        ("Bücher.example", Ok("xn--bcher-kva.example")),
        ("BÜCHER.example.", Ok("xn--bcher-kva.example")),
        ("例え。テスト。", Ok("xn--r8jz45g.xn--zckzah")),
        ("faß.de", Ok("xn--fa-hia.de")),
        ("XN--bcher-KVA.example", Ok("xn--bcher-kva.example")),
        ("r3---sn-x.example", Ok("r3---sn-x.example")),
        ("_a.x.com", Ok("_a.x.com")),
        ("xn--a-.com", Err(NameError::NotUts46)),
        ("１２７.1", Err(NameError::IpLiteral)),
        ("", Err(NameError::Empty)),
        (".", Err(NameError::Empty)),
        ("x.com：22", Err(NameError::BadCharacter)),
    ] {
        let read = HostName::from_user(text);
        assert_eq!(
            read.as_ref().map(HostName::as_str).map_err(|&error| error),
            expected,
            "{text}"
        );
    }
    assert_eq!(HostName::from_user(&"ü".repeat(1_000_000)), Err(NameError::TooLong));
}

#[test]
fn parents_of_allowed_names_exist() {
    let list = list("a.b.c.com\n.d.org\n");
    for (parent, exists) in [
        ("com", true),
        ("c.com", true),
        ("b.c.com", true),
        ("a.b.c.com", false),
        ("x.c.com", false),
        ("org", true),
        ("d.org", false),
        ("net", false),
    ] {
        assert_eq!(list.has_names_below(&name(parent)), exists, "{parent}");
    }
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof!["[abx]{1,2}", Just("com".to_owned())]
}

fn host() -> impl Strategy<Value = String> {
    prop::collection::vec(label(), 1..5).prop_map(|labels| labels.join("."))
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        host(),
        host().prop_map(|host| format!(".{host}")),
        (host(), 1..4_u16).prop_map(|(host, port)| format!("{host}:{port}")),
    ]
}

/// The rules again, as slowly and plainly as they can be said.
fn covers(line: &str, host: &str, port: Option<u16>) -> bool {
    match (line.strip_prefix('.'), line.split_once(':')) {
        (Some(suffix), _) => port.is_none() && (host == suffix || host.ends_with(line)),
        (None, Some((exact, number))) => host == exact && port.is_none_or(|port| port.to_string() == number),
        (None, None) => port.is_none() && host == line,
    }
}

proptest! {
    #[test]
    fn decide_agrees_with_the_plain_rules(lines in prop::collection::vec(line(), 0..12), hosts in prop::collection::vec(host(), 1..30)) {
        let list = list(&lines.join("\n"));
        for host in &hosts {
            let host_name = name(host);
            let is_covered = lines.iter().any(|line| covers(line, host, None));
            for service in [Service::Name, Service::Web] {
                let verdict = list.decide(&host_name, service);
                prop_assert_eq!(verdict.is_ok(), is_covered);
                if let Ok(allowed) = verdict {
                    prop_assert!(covers(&allowed.entry().to_string(), host, None));
                    let exact = lines.iter().any(|line| !line.starts_with('.') && covers(line, host, None));
                    prop_assert_eq!(allowed.entry().rule() == Rule::Exact, exact);
                }
            }
            for port in 1..4 {
                let expected = match (lines.iter().any(|line| covers(line, host, Some(port))), is_covered) {
                    (true, _) => Ok(()),
                    (false, true) => Err(Refusal::PortNotAllowed),
                    (false, false) => Err(Refusal::NameNotAllowed),
                };
                prop_assert_eq!(list.decide(&host_name, Service::Port(port)).map(|_| ()), expected);
            }
            let below = format!(".{host}");
            let expected = lines.iter().any(|line| line.trim_start_matches('.').split(':').next().unwrap().ends_with(&below));
            prop_assert_eq!(list.has_names_below(&host_name), expected);
        }
    }

    #[test]
    fn any_bytes_are_a_list_or_faults(text in prop::collection::vec(any::<u8>(), 0..400)) {
        parse_is_sound(&text)?;
    }

    #[test]
    fn text_like_a_list_is_a_list_or_faults(text in "([a-z0-9.:*/@\\[\\]_# \\-,ü。\u{202e}\r\n\t]|\\.com|https://|:22){0,60}") {
        parse_is_sound(text.as_bytes())?;
    }
}

fn parse_is_sound(text: &[u8]) -> Result<(), TestCaseError> {
    let parsed = Allowlist::parse(text, "f");
    let drawn = parsed.warnings.render(false)
        + &parsed
            .result
            .as_ref()
            .err()
            .map_or_else(String::new, |faults| faults.render(false));
    prop_assert!(drawn.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", drawn);
    match parsed.result {
        Ok(list) => {
            for entry in list.entries() {
                let again = Allowlist::parse(entry.to_string().as_bytes(), "again").result.unwrap();
                prop_assert_eq!(again.entries().next().unwrap().to_string(), entry.to_string());
            }
        }
        Err(faults) => {
            prop_assert!(!faults.is_empty());
            for fix in faults.iter().filter_map(|fault| fault.fix.as_ref()) {
                prop_assert!(
                    Allowlist::parse(fix.as_bytes(), "fix")
                        .result
                        .is_ok_and(|list| list.len() == 1),
                    "{}",
                    fix
                );
            }
        }
    }
    Ok(())
}
