//! `as-router --check`: what a person and a program learn about an allowlist.

use std::process::Command;

use serde_json::Value;
use system_tests::lab::process::run_with_input;
use system_tests::lab::suite::Test;
use system_tests::lab::{Done, binary, run, world};

pub(crate) const TESTS: &[Test] = &[
    Test::new("900_check_valid_list", valid),
    Test::new("901_check_faults_are_all_shown", faults),
    Test::new("902_check_names_are_explained", names),
    Test::new("903_check_json", json),
    Test::new("904_check_usage", usage),
    Test::new("905_check_says_what_the_router_does", agrees),
    Test::new("906_check_default_policy", default_policy),
];

const LIST: &str = "web.example\n.slot.example\ndb.example:5432 # the database\nweb.example\n";

fn check(text: &str, arguments: &[&str]) -> Done {
    run_with_input(
        Command::new(binary::as_router()).args(["--check", "-"]).args(arguments),
        text.as_bytes(),
        10,
    )
}

fn valid() {
    let done = check(LIST, &[]);
    assert_eq!(done.code(), 0, "{done}");
    let out = done.out();
    for word in ["web.example", ".slot.example", "db.example", "5432", "127.", "443"] {
        assert!(out.contains(word), "{word} in {out}");
    }
    // A warning about the duplicate, with its line.
    let all = out + &done.err();
    assert!(all.contains("warning") && all.contains('4'), "{all}");
}

fn faults() {
    let done = check("*.example\nfine.example\n1.2.3.4\nhttp://x.example\n", &[]);
    assert_eq!(done.code(), 1, "{done}");
    let all = done.out() + &done.err();
    for word in ["*.example", "1.2.3.4", "http://x.example", ":1:", ":3:", ":4:", "^"] {
        assert!(all.contains(word), "{word} in {all}");
    }
    let missing = run(
        Command::new(binary::as_router()).args(["--check", "/run/lab/no-such-file"]),
        10,
    );
    assert_eq!(missing.code(), 1, "{missing}");
    assert!(missing.err().contains("/run/lab/no-such-file"), "{missing}");
}

fn names() {
    let done = check(LIST, &["web.example", "a.slot.example:443", "db.example:5432"]);
    assert_eq!(done.code(), 0, "{done}");
    let done = check(LIST, &["web.example:22", "evil.test"]);
    assert_eq!(done.code(), 1, "{done}");
    assert!(done.out().contains("evil.test") && done.out().contains("22"), "{done}");
    // One that is denied is enough.
    assert_eq!(check(LIST, &["web.example", "evil.test"]).code(), 1);
}

fn json() {
    let done = check(LIST, &["--format", "json", "web.example", "evil.test"]);
    assert_eq!(done.code(), 1, "{done}");
    let report: Value = serde_json::from_str(&done.out()).unwrap();
    assert_eq!(report["valid"], true);
    let db = report["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["name"] == "db.example")
        .unwrap();
    assert_eq!(db["line"], 3);
    assert!(db["router_port"].as_u64().unwrap() >= 10_000);
    assert!(db["address"].as_str().unwrap().starts_with("127."));
    assert_eq!(report["names"][0]["allowed"], true);
    assert_eq!(report["names"][0]["line"], 1);
    assert_eq!(report["names"][1]["allowed"], false);
    assert_eq!(report["names"][1]["code"], "name-not-allowed");
    let done = check("*.example\n", &["--format", "json"]);
    assert_eq!(done.code(), 1);
    let report: Value = serde_json::from_str(&done.out()).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(
        (&report["faults"][0]["line"], &report["faults"][0]["column"]),
        (&1.into(), &1.into())
    );
}

fn usage() {
    for arguments in [
        &["--format", "xml"][..],
        &["1.2.3.4"],
        &["https://web.example/"],
        &["web.example:0"],
        &["a b"],
    ] {
        assert_eq!(check(LIST, arguments).code(), 2, "{arguments:?}");
    }
    assert_eq!(run(Command::new(binary::as_router()).arg("--check"), 10).code(), 2);
}

/// The same file, the same words, the same addresses.
fn agrees() {
    let router = &world().router;
    let mut command = Command::new(binary::as_router());
    command.args(["--format", "json", "--check"]).arg(router.allowlist());
    command.args(["web.example", "x.slot.example", "forbidden.example", "MIXED.example"]);
    let done = run(&mut command, 10);
    let report: Value = serde_json::from_str(&done.out()).unwrap();
    for name in report["names"].as_array().unwrap() {
        let dig = ["+short", name["name"].as_str().unwrap()];
        let address = run(world().client.command("dig").args(dig), 10).ok();
        assert_eq!(address.trim(), name["address"].as_str().unwrap_or_default(), "{name}");
        assert_eq!(name["allowed"].as_bool().unwrap(), !address.is_empty());
    }
}

fn default_policy() {
    let policy = binary::workspace().join("allowed-hosts");
    let done = run(
        Command::new(binary::as_router())
            .arg("--check")
            .arg(policy)
            .arg("api.anthropic.com"),
        10,
    );
    assert_eq!(done.code(), 0, "{done}");
}
