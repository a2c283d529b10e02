//! GET requests on kept connections.

use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Options;
use super::tally::{Tally, pacer, turn};
use crate::origin::ANSWER_BYTES;

pub(super) async fn worker(options: Rc<Options>, tally: Rc<Tally>, number: usize) -> Result<()> {
    let request = format!(
        "GET /item HTTP/1.1\r\nHost: {}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n",
        options.name
    );
    let mut stream = TcpStream::connect(options.to).await.context("connect")?;
    stream.set_nodelay(true)?;
    let mut pacer = pacer(&options, number);
    while tally.more() {
        turn(&mut pacer).await;
        let start = Instant::now();
        stream.write_all(request.as_bytes()).await.context("send the request")?;
        response(&mut stream).await?;
        tally.done(start);
    }
    Ok(())
}

/// Reads one response, whose body is known to have `ANSWER_BYTES`.
async fn response(stream: &mut TcpStream) -> Result<()> {
    let mut buffer = [0; 4096];
    let mut filled = 0;
    loop {
        let read = stream
            .read(buffer.get_mut(filled..).unwrap_or_default())
            .await
            .context("read the response")?;
        ensure!(read > 0, "the connection ended within a response");
        filled += read;
        let seen = buffer.get(..filled).unwrap_or_default();
        if let Some(head) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            ensure!(
                seen.starts_with(b"HTTP/1.1 200 "),
                "not 200: {}",
                String::from_utf8_lossy(seen)
            );
            if filled == head + 4 + ANSWER_BYTES {
                return Ok(());
            }
        }
    }
}
