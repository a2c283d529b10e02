//! Connections that are open and silent.

use std::io::{Read, Write, stdin, stdout};

use anyhow::{Context, Result};
use tokio::io::AsyncReadExt;

use super::{Options, open};
use crate::hello::client_hello;

/// Opens all, prints how many, and holds them until stdin ends.
pub(super) async fn hold(options: &Options) -> Result<()> {
    let hello = client_hello(&options.name);
    let mut held = Vec::with_capacity(options.connections);
    for number in 0..options.connections {
        let mut stream = open(options, &hello)
            .await
            .with_context(|| format!("connection {number}"))?;
        // The server's one byte: the daemon has finished its work for this connection.
        stream.read_u8().await.with_context(|| format!("connection {number}"))?;
        held.push(stream);
    }
    println!("{}", held.len());
    stdout().flush()?;
    // Silent sockets need no runtime.
    stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
