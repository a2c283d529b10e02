//! Short TLS connections: connect, hello, 100 bytes, end.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncReadExt;

use super::tally::{Tally, pacer, turn};
use super::{Options, open};
use crate::hello::client_hello;
use crate::origin::ANSWER_BYTES;
use crate::stats::now_nanos;

pub(super) async fn worker(options: Rc<Options>, tally: Rc<Tally>, number: usize) -> Result<()> {
    let hello = client_hello(&options.name);
    let mut pacer = pacer(&options, number);
    while tally.more() {
        turn(&mut pacer).await;
        let start = Instant::now();
        match once(&options, &hello).await {
            Ok(()) => tally.done(start),
            Err(error) => tally.note(Err(error)),
        }
    }
    Ok(())
}

/// Repeats one connection until it succeeds, and prints the time, in nanoseconds since 1970.
pub(super) async fn ready(options: &Options) -> Result<()> {
    let hello = client_hello(&options.name);
    let deadline = Instant::now() + Duration::from_secs_f64(options.seconds);
    loop {
        match once(options, &hello).await {
            Ok(()) => {
                println!("{}", now_nanos());
                return Ok(());
            }
            Err(error) => ensure!(Instant::now() < deadline, "not ready in time: {error:#}"),
        }
        // Finer than any start that is worth telling apart, and not a load on the core.
        std::thread::sleep(Duration::from_micros(200));
    }
}

async fn once(options: &Options, hello: &[u8]) -> Result<()> {
    let mut stream = open(options, hello).await?;
    let mut buffer = [0; 2 * ANSWER_BYTES];
    let mut total = 0;
    loop {
        let read = stream.read(&mut buffer).await.context("read the answer")?;
        total += read;
        if read == 0 {
            break;
        }
    }
    ensure!(total == ANSWER_BYTES, "{total} bytes instead of {ANSWER_BYTES}");
    Ok(())
}
