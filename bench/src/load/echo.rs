//! Small messages there and back on kept connections.

use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::tally::{Tally, pacer, turn};
use super::{Options, open};
use crate::hello::client_hello;

/// A keystroke, a prompt, a small query.
const MESSAGE_BYTES: usize = 64;

pub(super) async fn worker(options: Rc<Options>, tally: Rc<Tally>, number: usize) -> Result<()> {
    let mut stream = open(&options, &client_hello(&options.name)).await?;
    let mut pacer = pacer(&options, number);
    let mut message = [0x42; MESSAGE_BYTES];
    while tally.more() {
        turn(&mut pacer).await;
        let start = Instant::now();
        stream.write_all(&message).await.context("send")?;
        stream.read_exact(&mut message).await.context("receive")?;
        tally.done(start);
    }
    Ok(())
}
