//! `make run`: a sandbox with router and forwarder, a small internet, and what each request becomes.

// A lab that does not start has nothing to show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::IsTerminal;
use std::process::ExitCode;

use system_tests::lab::servers::client_key;
use system_tests::lab::world::ALLOWLIST;
use system_tests::lab::{run, sandbox, world};

/// Longest time for one command, in seconds.
const LIMIT: u64 = 20;

/// What a person would type in the sandbox, and what it shows.
const SCENES: [(&str, &[&str]); 4] = [
    (
        "Allowed names work, without a proxy setting and without a certificate of ours",
        &[
            "dig +short web.example",
            "curl -sS https://web.example/",
            "curl -sS http://api.example/",
            "wget -qO- https://plain.example/",
            "git ls-remote https://git.example/git/demo.git",
        ],
    ),
    (
        "host:port entries carry any protocol",
        &[
            "ssh SSH_OPTIONS git.example echo hello from the other side of ssh",
            "psql 'host=db.example user=postgres sslmode=verify-full sslrootcert=/run/lab/ca/ca.pem' -tAc 'select version()'",
            "bash -c 'exec 3<>/dev/tcp/echo.example/7000; echo any protocol at all >&3; head -n 1 <&3'",
        ],
    ),
    (
        "Everything else is refused, and says why",
        &[
            "dig +noall +comments forbidden.example | grep -E 'status|EDE'",
            "curl -sS https://forbidden.example/",
            "openssl s_client -connect web.example:443 -servername forbidden.example </dev/null 2>&1 | grep alert | head -n 1",
            "curl -sS -H 'Host: forbidden.example' http://web.example/",
            "curl -sS --max-time 5 telnet://web.example:22",
            "curl -sS http://closed.example/",
        ],
    ),
    (
        "There is no way around the router",
        &[
            "ip route",
            "curl -sS --max-time 5 https://203.0.113.10/",
            "dig +time=1 +tries=1 +short @203.0.113.53 web.example",
            "curl -sS --max-time 5 http://metadata.bad.example/",
        ],
    ),
];

fn main() -> ExitCode {
    if let Some(code) = sandbox::enter() {
        return code;
    }
    let style = if std::io::stdout().is_terminal() {
        ["\x1b[1m", "\x1b[36m", "\x1b[0m"]
    } else {
        [""; 3]
    };
    let [bold, blue, plain] = style;
    println!("{bold}The allowlist{plain}\n{}", indent(ALLOWLIST));
    let world = world();
    for (title, commands) in SCENES {
        println!("{bold}{title}{plain}");
        for command in commands {
            println!("  {blue}${plain} {command}");
            let line = command.replace("SSH_OPTIONS", &client_key().join(" "));
            let done = run(world.client.command("sh").args(["-c", &line]), LIMIT);
            print!("{}", indent(&(done.out() + &done.err())));
        }
        println!();
    }
    println!("{bold}The router's log{plain}");
    for event in world.router.events() {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let why = [text("code"), text("upstream"), text("reason"), text("message")].join(" ");
        let what = format!("{:5} {}:{}", text("protocol"), text("name"), event["port"]);
        println!(
            "    {:8} {} {}",
            text("event"),
            if event["port"].is_null() { "" } else { &what },
            why.trim()
        );
    }
    ExitCode::SUCCESS
}

fn indent(text: &str) -> String {
    let lines = text.trim_end().lines().filter(|line| !line.is_empty()).take(12);
    lines.map(|line| format!("    {line}\n")).collect()
}
