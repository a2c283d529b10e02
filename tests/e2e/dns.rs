//! DNS.
use system_tests::lab::suite::Test;
use system_tests::lab::{run, world};

pub(crate) const TESTS: &[Test] = &[Test::new("100_x", x)];
fn x() {
    let w = world();
    let sh = |l: &str| eprintln!("{l}\n{}", run(w.router_side.command("sh").args(["-c", l]), 20));
    sh("cat /etc/resolv.conf; ip a; ip r; ip -6 r");
    sh(
        "dig +noall +answer web.example several.dns.example chain1.dns.example v6-mapped-loopback.bad.example AAAA nat64-loopback.bad.example AAAA",
    );
    sh(
        "time dig broken.dns.example; dig missing.dns.example | grep status; dig big.dns.example | tail -5; dig big.dns.example +ignore | grep flags; dig loop1.dns.example | head -20",
    );
    sh(
        "echo '203.0.113.10 web.example api.example plain.example\n203.0.113.22 git.example\n203.0.113.32 db.example\n2001:db8:1::10 v6-only.dns.example' > /etc/hosts",
    );
    sh(
        "curl -sS https://web.example/ https://plain.example http://api.example/ https://v6-only.dns.example/ ; wget -qO- https://web.example; gnutls-cli web.example </dev/null | tail -3; curl -sS https://web.example/file/65537 | wc -c",
    );
    sh(
        "curl -sS https://web.example/events?pause=1; curl -sS https://web.example/echo -d abc; head -c 100000 /dev/zero | curl -sS -T - https://web.example/upload/x; curl -sS --data-binary @/bin/ls -H 'Transfer-Encoding: chunked' http://web.example/echo | cmp - /bin/ls",
    );
    sh("time git clone -q https://git.example/git/demo.git a && ls a");
    sh(
        "GIT_SSH_COMMAND='ssh -F none -i /run/lab/ssh/client -o UserKnownHostsFile=/run/lab/ssh/known_hosts -o BatchMode=yes' git clone -q git.example:/run/lab/git/demo.git b && ls b",
    );
    sh("psql 'host=db.example user=postgres sslmode=verify-full sslrootcert=/run/lab/ca/ca.pem' -tAc 'select 1+1'");
    sh(
        "ls -la /etc/ssl/certs; python3 -c 'import urllib.request as u; print(u.urlopen(\"https://web.example\").read())'; python3 -c 'import pycurl; print(pycurl.version)'",
    );
    sh(
        "node -e 'require(\"https\").get(\"https://web.example\", r=>r.pipe(process.stdout))'; node --use-openssl-ca -e 'require(\"https\").get(\"https://web.example\", r=>r.pipe(process.stdout))'",
    );
    sh("ip netns; ps aux | grep -v kworker");
}
