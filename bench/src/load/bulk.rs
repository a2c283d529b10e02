//! Bulk transfers in one direction.

use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::tally::Tally;
use super::{Options, open};
use crate::hello::client_hello;
use crate::origin::CHUNK_BYTES;

/// Reads until the time is up.
pub(super) async fn down(options: Rc<Options>, tally: Rc<Tally>, _number: usize) -> Result<()> {
    let start = Instant::now();
    let mut stream = open(&options, &client_hello(&options.name)).await?;
    let mut buffer = vec![0; CHUNK_BYTES];
    while tally.more() {
        let read = stream.read(&mut buffer).await.context("receive")?;
        ensure!(read > 0, "the stream ended early");
        tally.moved(read);
    }
    tally.done(start);
    Ok(())
}

/// Writes until the time is up, then half-closes and waits until the other side, having read everything, closes too.
pub(super) async fn up(options: Rc<Options>, tally: Rc<Tally>, _number: usize) -> Result<()> {
    let start = Instant::now();
    let mut stream = open(&options, &client_hello(&options.name)).await?;
    let buffer = vec![0; CHUNK_BYTES];
    while tally.more() {
        tally.moved(stream.write(&buffer).await.context("send")?);
    }
    stream.shutdown().await.context("half-close")?;
    let mut rest = [0; 1];
    let _ = stream.read(&mut rest).await.context("wait for the end")?;
    tally.done(start);
    Ok(())
}
