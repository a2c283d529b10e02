//! System tests of as-router: real clients in one network namespace, real servers in another, the router between.
//!
//! `cargo test -p system-tests --test e2e [NAME]` as root; `make e2e` also installs what they need.

// A failed expectation is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod check;
mod cost;
mod dns;
mod forward;
mod http;
mod limits;
mod operation;
mod relay;
mod tls;
mod upstream;

use std::process::ExitCode;

use system_tests::lab::{sandbox, suite, world};

fn main() -> ExitCode {
    if let Some(code) = sandbox::enter() {
        return code;
    }
    let tests = [
        dns::TESTS,
        tls::TESTS,
        http::TESTS,
        forward::TESTS,
        relay::TESTS,
        upstream::TESTS,
        limits::TESTS,
        operation::TESTS,
        check::TESTS,
        cost::TESTS,
    ];
    suite::run(tests.into_iter().flatten().copied(), || {
        world();
    })
}
