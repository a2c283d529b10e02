//! Every fault and warning, with its place and its remedy.

// Clippy's exception for tests does not reach the helpers beside them.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)]

use allowlist::{Allowlist, Code, Diagnostic, Diagnostics, Severity};

fn faults(text: &[u8]) -> Diagnostics {
    Allowlist::parse(text, "f").result.expect_err("a fault")
}

fn fault(line: &[u8]) -> Diagnostic {
    let faults = faults(line);
    assert_eq!(faults.total(), 1, "{faults}");
    faults[0].clone()
}

fn warnings(text: &str) -> Vec<(&'static str, u32)> {
    let parsed = Allowlist::parse(text.as_bytes(), "f");
    parsed.result.unwrap_or_else(|faults| panic!("{faults}"));
    parsed.warnings.iter().map(|w| (w.code.as_str(), w.line)).collect()
}

#[test]
fn each_fault_has_its_code_column_text_and_fix() {
    let cases: &[(&str, &str, u32, &str, Option<&str>)] = &[
        ("https://x.com/path", "scheme", 1, "https://", Some("x.com")),
        ("http://x.com:8080/", "scheme", 1, "http://", Some("x.com:8080")),
        ("ssh://git@x.com/a.git", "scheme", 1, "ssh://", Some("x.com:22")),
        ("  https://*.x.com", "scheme", 3, "https://", Some(".x.com")),
        ("user:pw@x.com", "userinfo", 1, "user:pw@", Some("x.com")),
        ("git@x.com:a/b.git", "userinfo", 1, "git@", Some("x.com:22")),
        ("x.com/path", "path", 6, "/path", Some("x.com")),
        ("x.com?q", "path", 6, "?q", Some("x.com")),
        ("x.com\\y", "path", 6, "\\y", Some("x.com")),
        ("//x.com/y", "path", 1, "//x.com/y", Some("x.com")),
        ("*", "wildcard", 1, "*", None),
        ("*.x.com", "wildcard", 1, "*", Some(".x.com")),
        ("*.x.com:443", "wildcard", 1, "*", Some(".x.com")),
        ("a*.x.com", "wildcard", 2, "*", None),
        ("x.com:*", "wildcard", 7, "*", None),
        ("1.2.3.4", "ip-literal", 1, "1.2.3.4", None),
        ("1.2.3", "ip-literal", 1, "1.2.3", None),
        ("2130706433", "ip-literal", 1, "2130706433", None),
        ("0177.0.0.1", "ip-literal", 1, "0177.0.0.1", None),
        ("0x7f.1", "ip-literal", 1, "0x7f.1", None),
        (".1.2.3.4", "ip-literal", 1, ".1.2.3.4", None),
        ("１.２.３.４", "ip-literal", 1, "１.２.３.４", None),
        ("1.2.3.4:22", "ip-literal", 1, "1.2.3.4:22", None),
        ("10.0.0.0/8", "ip-literal", 1, "10.0.0.0/8", None),
        ("::1", "ip-literal", 1, "::1", None),
        ("[::1]:80", "ip-literal", 1, "[::1]:80", None),
        ("fe80::1%eth0", "ip-literal", 1, "fe80::1%eth0", None),
        ("::ffff:127.0.0.1", "ip-literal", 1, "::ffff:127.0.0.1", None),
        ("https://127.0.0.1/", "scheme", 1, "https://", None),
        ("[x.com]:22", "bad-character", 1, "[", Some("x.com:22")),
        ("x.com:", "missing-port", 6, ":", Some("x.com")),
        ("x.com:0", "invalid-port", 7, "0", None),
        ("x.com:65536", "invalid-port", 7, "65536", None),
        (
            "x.com:99999999999999999999",
            "invalid-port",
            7,
            "99999999999999999999",
            None,
        ),
        ("x.com:+22", "invalid-port", 7, "+22", Some("x.com:22")),
        ("x.com:-22", "invalid-port", 7, "-22", None),
        ("x.com:022", "invalid-port", 7, "022", Some("x.com:22")),
        ("x.com:ssh", "invalid-port", 7, "ssh", Some("x.com:22")),
        ("x.com:22:23", "invalid-port", 7, "22:23", None),
        ("x.com:443-500", "port-range", 7, "443-500", None),
        ("x.com:80,443", "port-range", 7, "80,443", None),
        (".x.com:22", "suffix-port", 7, ":22", None),
        (".x.com:443", "suffix-port", 7, ":443", Some(".x.com")),
        ("x.com : 22", "extra-text", 1, "x.com : 22", Some("x.com:22")),
        ("x.com y.com", "extra-text", 7, "y.com", None),
        ("x.com the host", "extra-text", 7, "the host", Some("x.com # the host")),
        ("a..b.com", "empty-label", 2, "..", Some("a.b.com")),
        ("x.com..", "empty-label", 6, "..", Some("x.com")),
        ("..x.com", "empty-label", 1, "..", Some(".x.com")),
        (".", "empty-label", 1, ".", None),
        ("。x.com", "empty-label", 1, "。x.com", None),
        ("-a.com", "hyphen-at-edge", 1, "-a", None),
        ("b.a-.com", "hyphen-at-edge", 3, "a-", None),
        ("x%2ecom", "bad-character", 2, "%", None),
        ("x.com,", "bad-character", 6, ",", Some("x.com")),
        ("\"x.com\"", "bad-character", 1, "\"", Some("x.com")),
        ("x.com：22", "bad-character", 6, "：", None),
        ("＊.x.com", "bad-character", 1, "＊", None),
        ("x.com\u{a0}", "bad-character", 6, "\\u{a0}", Some("x.com")),
        ("x\u{2024}com", "not-uts-46", 1, "x\u{2024}com", None),
        ("xn--a-.com", "not-uts-46", 1, "xn--a-", None),
        ("a\0b.com", "control-character", 2, "\\0", None),
        ("a\rb.com", "control-character", 2, "\\r", None),
        ("x.com # \u{1b}[2J", "control-character", 9, "\\u{1b}", None),
        ("x.com # \u{202e}", "hidden-character", 9, "\\u{202e}", None),
        ("e\u{200b}x.com", "hidden-character", 2, "\\u{200b}", None),
    ];
    for &(line, code, column, text, fix) in cases {
        let fault = fault(line.as_bytes());
        assert_eq!(
            (
                fault.code.as_str(),
                fault.column,
                fault.text.as_str(),
                fault.fix.as_deref()
            ),
            (code, column, text, fix),
            "{line:?}"
        );
        assert_eq!(fault.code.severity(), Severity::Fault);
        if let Some(fix) = fix {
            assert!(fault.help.contains(fix), "{}", fault.help);
            assert_eq!(
                Allowlist::parse(fix.as_bytes(), "fix")
                    .result
                    .map(|list| list.len())
                    .ok(),
                Some(1)
            );
        }
    }
}

#[test]
fn lengths_are_bounded() {
    let label = "a".repeat(64);
    assert_eq!(fault(format!("{label}.com").as_bytes()).code, Code::LabelTooLong);
    let name = ["abcdefg"; 40].join(".");
    assert_eq!(fault(name.as_bytes()).code, Code::NameTooLong);
    assert_eq!(fault(&vec![b'a'; 5000]).code, Code::EntryTooLong);
    // A megabyte that UTS 46 would have to work on.
    assert_eq!(fault("ü".repeat(1 << 19).as_bytes()).code, Code::EntryTooLong);
    let long_line = vec![b'a'; 8_000_000];
    let fault_of_long_line = fault(&long_line);
    assert_eq!(fault_of_long_line.code, Code::EntryTooLong);
    assert!(fault_of_long_line.text.len() < 300);
    let hundred_megabytes = vec![b'a'; 100_000_000];
    assert_eq!(fault(&hundred_megabytes).code, Code::FileTooLarge);
}

#[test]
fn encodings() {
    for accepted in [
        &b"\xef\xbb\xbfx.com\r\n"[..],
        b"x.com\r\n",
        b"x.com",
        b"\t x.com \t# c\n\n",
        b"x.com#c",
        b"X.COM.\n",
    ] {
        let list = Allowlist::parse(accepted, "f").result.unwrap();
        assert_eq!(list.entries().map(ToString::to_string).collect::<Vec<_>>(), ["x.com"]);
    }
    let list = Allowlist::parse("bücher.example\n例え。テスト。\n_a._tcp.x.com".as_bytes(), "f")
        .result
        .unwrap();
    assert_eq!(
        list.entries().map(ToString::to_string).collect::<Vec<_>>(),
        ["xn--bcher-kva.example", "xn--r8jz45g.xn--zckzah", "_a._tcp.x.com"]
    );
    assert_eq!(fault(b"\xff\xfex\0.\0c\0").code, Code::Utf16);
    let latin1 = fault(b"x.com\n# b\xfccher");
    assert_eq!((latin1.code, latin1.line, latin1.column), (Code::NotUtf8, 2, 4));
    let joined = fault(b"x.com\n\xef\xbb\xbfy.com");
    assert_eq!((joined.code, joined.line, joined.column), (Code::HiddenCharacter, 2, 1));
}

#[test]
fn all_faults_at_once_and_none_lets_the_rest_through() {
    let faults = faults(b"ok.com\n*\nfine.com\n1.2.3.4\nx:0\n");
    let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [2, 4, 5]);
}

#[test]
fn many_faults_stay_readable() {
    let faults = faults("*\n".repeat(100_000).as_bytes());
    assert_eq!((faults.total(), faults.len()), (100_000, Diagnostics::KEPT));
    let drawn = faults.render(false);
    assert_eq!(drawn.matches("error[wildcard]").count(), Diagnostics::DRAWN);
    assert!(drawn.ends_with("... and 99950 more in f\n"), "{drawn}");
}

#[test]
fn drawing_underlines_and_names_the_place() {
    let drawn = faults("ok.com\n  https://x.com/a\n".as_bytes()).render(false);
    let expected = "\
error[scheme]: an entry is a host name and not a URL
 --> f:2:3
  |
2 |   https://x.com/a
  |   ^^^^^^^^
  |
  = help: write `x.com`: the list allows hosts on ports, whatever the protocol

";
    assert_eq!(drawn, expected);
    assert!(faults(b"*").render(true).contains("\u{1b}["));
}

#[test]
fn drawing_keeps_the_place_of_an_escaped_line_and_escapes_the_file_name() {
    let parsed = Allowlist::parse("ü\u{1b}ü\u{202e}*".as_bytes(), "a\u{1b}b");
    let drawn = parsed.result.unwrap_err().render(false);
    assert!(drawn.contains("--> a\\u{1b}b:1:2\n"), "{drawn}");
    assert!(drawn.contains("ü\\u{1b}ü\\u{202e}*"), "{drawn}");
    assert!(drawn.chars().all(|c| c == '\n' || !c.is_control()), "{drawn:?}");
}

#[test]
fn warnings_tell_and_do_not_refuse() {
    for (text, expected) in [
        ("", &[("empty-list", 1)][..]),
        ("# nothing\n", &[("empty-list", 1)]),
        ("x.com\ny.com\nX.com.\n", &[("duplicate", 3)]),
        (".x.com\n.x.com\n", &[("duplicate", 2)]),
        ("x.com:1\nx.com:1\n", &[("duplicate", 2)]),
        ("a.x.com\n.x.com\n", &[("covered", 1)]),
        (".a.x.com\n.x.com\nx.com\n", &[("covered", 1), ("covered", 3)]),
        ("x.com\nx.com:8080\n", &[("covered", 1)]),
        ("a.x.com:8080\n.x.com\n", &[]),
        ("evilx.com\n.x.com\n", &[]),
        (".com\n", &[("public-suffix", 1)]),
        (".co.uk\n", &[("public-suffix", 1)]),
        (".github.io\n", &[("shared-hosting", 1)]),
        (".s3.amazonaws.com\n", &[("shared-hosting", 1)]),
        ("github.io\n.internal\n.a.github.io", &[]),
        ("x.com:22\n", &[("ssh", 1)]),
        ("x.com:443\nx.com:80\n", &[]),
    ] {
        assert_eq!(warnings(text), expected, "{text:?}");
    }
}

#[test]
fn warnings_show_their_line() {
    let parsed = Allowlist::parse(b"y.net\n\n  .com  # all\n", "f");
    let warning = &parsed.warnings[0];
    assert_eq!((warning.line, warning.column, warning.text.as_str()), (3, 3, ".com"));
}

#[test]
fn codes_are_distinct() {
    let mut codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Code::ALL.len());
}

#[test]
fn the_packaged_policy_has_neither_faults_nor_warnings() {
    let parsed = Allowlist::parse(include_bytes!("../../../allowed-hosts"), "allowed-hosts");
    assert_eq!(parsed.warnings.render(false), "");
    let list = parsed.result.unwrap_or_else(|faults| panic!("{faults}"));
    assert!(list.entries().any(|entry| entry.name().as_str() == "api.anthropic.com"));
}
