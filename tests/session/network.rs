//! What the sandbox reaches, and what it does not.

use system_tests::lab::suite::Test;

use crate::harness::User;

pub(crate) const TESTS: &[Test] = &[
    Test::limited(
        "200_names_on_the_list_resolve_to_loopback_and_no_other_name_does",
        60,
        names,
    ),
    Test::limited("201_https_http_and_tcp_by_name", 60, by_name),
    Test::limited("202_no_address_is_reached_directly", 90, no_address),
    Test::limited("203_a_refusal_says_who_refused", 60, a_refusal_says_who_refused),
    Test::limited(
        "204_sessions_do_not_reach_each_other",
        120,
        sessions_do_not_reach_each_other,
    ),
];

fn names() {
    let user = User::new();
    let out = user.sh(
        "for name in api.anthropic.com github.com deep.down.example.com evil.example.net localhost.evil.example.net \
         host.containers.internal agent-sandbox-egress dns.podman; do \
         echo \"$name $(getent ahostsv4 $name | awk '{print $1; exit}')\"; done",
    );
    let lines: Vec<_> = out.ok().lines().collect();
    for line in &lines[..3] {
        let address = line.split(' ').nth(1).unwrap();
        assert!(address.starts_with("127.") && address != "127.0.0.1", "{lines:?}");
    }
    for line in &lines[3..] {
        assert_eq!(line.split(' ').nth(1), Some(""), "{lines:?}");
    }
}

fn by_name() {
    let user = User::new();
    let out = user.sh(
        "curl -sS -k -o /dev/null -w '%{http_code}\\n' https://api.anthropic.com/; \
         curl -sS -o /dev/null -w '%{http_code}\\n' http://www.example.com/; \
         printf ping | nc -N db.example.com 7000; echo; \
         nc -d -w 5 db.example.com 5432 | head -c 1 | wc -c",
    );
    assert_eq!(out.ok(), "200\n200\nping\n1\n");
}

fn no_address() {
    let user = User::new();
    // The real addresses of a host on the list and of one off it, the host itself, the metadata service, the gateway of
    // the session's network, the address podman gives the host, other name servers.
    let out = user.sh(
        "gateway=$(ip -4 -brief address show eth0 | awk '{print $3}' | sed 's/\\.[0-9]*\\/.*/.1/'); \
         for to in 203.0.113.10:443 203.0.113.66:443 198.51.100.2:22 169.254.169.254:80 169.254.1.2:80 192.0.2.1:443 \
         $gateway:53 $gateway:80 $gateway:22 203.0.113.53:53; do \
         nc -z -w 2 ${to%:*} ${to#*:} 2>/dev/null && echo open $to; done; \
         nc -z -w 2 2001:db8:113::20 443 2>/dev/null && echo open v6; \
         for server in $gateway 203.0.113.53 169.254.1.1 127.0.0.11 127.0.0.53; do \
         host -W 1 -t A evil.example.net $server 2>/dev/null | grep -q 'has address' && echo answer $server; done; \
         printf x | nc -u -w 1 203.0.113.66 9999; ip route | grep -c default; echo end",
    );
    assert_eq!(out.stdout, "0\nend\n", "{out:?}");
}

fn a_refusal_says_who_refused() {
    let user = User::new();
    let out = user.sh("address=$(getent ahostsv4 github.com | awk '{print $1; exit}'); \
         curl -sS -o - -H 'Host: evil.example.net' http://$address/");
    assert!(out.stdout.contains("evil.example.net"), "{out:?}");
    assert!(out.stdout.to_lowercase().contains("sandbox"), "{out:?}");
    let out = user.sh("curl -sS -k --max-time 5 https://evil.example.net/ || echo failed");
    assert_eq!(out.stdout, "failed\n", "{out:?}");
}

fn sessions_do_not_reach_each_other() {
    let (one, two) = (User::new(), User::new());
    let mut server = one.start(&[
        "--exec",
        "sh",
        "-c",
        "ip -4 -brief address show eth0 | awk '{print $3}'; nc -l -k 0.0.0.0 8080 >/dev/null & cat >/dev/null",
    ]);
    let mut address = Vec::new();
    let stdout = server.child.stdout.as_mut().unwrap();
    let mut byte = [0];
    while std::io::Read::read(stdout, &mut byte).unwrap() == 1 && byte != [b'\n'] {
        address.push(byte[0]);
    }
    let address = String::from_utf8(address).unwrap();
    let address = address.split('/').next().unwrap();
    let router = format!("{}.254", address.rsplit_once('.').unwrap().0);
    let out = two.sh(&format!(
        "for to in {address}:8080 {router}:443 {router}:53; do nc -z -w 2 ${{to%:*}} ${{to#*:}} && echo open $to; done; echo end"
    ));
    assert_eq!(out.stdout, "end\n", "{out:?}");
    drop(server.child.stdin.take());
    server.finish();
}
