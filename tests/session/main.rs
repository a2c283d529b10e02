//! System tests of agent-sandbox: whole sessions on real rootless podman.
//!
//! `cargo test -p system-tests --test session [NAME]`. An ordinary user's own podman is used if it works; root gets the
//! podman lab (`tests/podman-lab/enter`, with `$PODMAN_LAB_DEBIAN` 13 or 12). Images: `images/build`.

// A failed expectation is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod endings;
mod failures;
mod harness;
mod network;
mod place;
mod readme;
mod streams;
mod terminal;

use std::process::ExitCode;

use system_tests::lab::suite;

fn main() -> ExitCode {
    if let Some(code) = place::enter() {
        return code;
    }
    let tests = [
        readme::TESTS,
        network::TESTS,
        streams::TESTS,
        terminal::TESTS,
        endings::TESTS,
        failures::TESTS,
    ];
    suite::run(tests.into_iter().flatten().copied(), || {})
}
