//! Tests with a name, a number and a hard time limit.

use std::panic;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

use super::wait;

/// Time that a test may take unless it says otherwise.
const LIMIT: Duration = Duration::from_secs(30);

/// One test: a panic is its failure.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    name: &'static str,
    limit: Duration,
    body: fn(),
}

impl Test {
    /// A test that may take 30 seconds.
    pub const fn new(name: &'static str, body: fn()) -> Self {
        Self {
            name,
            limit: LIMIT,
            body,
        }
    }

    /// A test with a limit of its own.
    pub const fn limited(name: &'static str, seconds: u64, body: fn()) -> Self {
        Self {
            name,
            limit: Duration::from_secs(seconds),
            body,
        }
    }
}

/// Runs the tests that the command line asks for. `set_up` runs first if any test will.
pub fn run(tests: impl IntoIterator<Item = Test>, set_up: fn()) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most tests wait for a network most of the time.
    arguments.test_threads.get_or_insert(6);
    if !arguments.list {
        set_up();
    }
    let trials = tests
        .into_iter()
        .map(|test| Trial::test(test.name, move || limited(test)))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn limited(test: Test) -> Result<(), Failed> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name(test.name.to_owned())
        .spawn(move || {
            let _ = sender.send(panic::catch_unwind(test.body));
        })
        .map_err(|error| format!("no thread: {error}"))?;
    let limit = wait::limit(test.limit.as_secs());
    match receiver.recv_timeout(limit) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(panic)) => Err(message(panic.as_ref()).into()),
        Err(_) => Err(format!("over its limit of {limit:?}").into()),
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "panic".to_owned())
}
