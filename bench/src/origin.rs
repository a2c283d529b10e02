//! The servers behind the router: one address for each [`Role`].

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::lab::Role;

/// Bytes of the short answers.
pub(crate) const ANSWER_BYTES: usize = 100;
/// Bytes of one write or read of a bulk transfer.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Serves until it is killed.
pub(crate) fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        for role in Role::ALL {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket
                .bind(role.socket().into())
                .with_context(|| format!("cannot listen on {}", role.socket()))?;
            tokio::task::spawn_local(accept(socket.listen(16_384)?, role));
        }
        std::future::pending().await
    })
}

async fn accept(listener: TcpListener, role: Role) {
    loop {
        match listener.accept().await {
            // A client that goes away in the middle is its own concern: the load counts what it misses.
            Ok((stream, _)) => drop(tokio::task::spawn_local(serve(stream, role))),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(mut stream: TcpStream, role: Role) -> Result<()> {
    stream.set_nodelay(true)?;
    if role == Role::Web {
        return web(stream).await;
    }
    read_record(&mut stream).await?;
    match role {
        Role::Close => stream.write_all(&[0x17; ANSWER_BYTES]).await?,
        Role::Echo => {
            let mut buffer = [0; 4096];
            loop {
                let read = stream.read(&mut buffer).await?;
                if read == 0 {
                    break;
                }
                stream.write_all(buffer.get(..read).unwrap_or_default()).await?;
            }
        }
        Role::Down => {
            let chunk = vec![0; CHUNK_BYTES];
            loop {
                stream.write_all(&chunk).await?;
            }
        }
        Role::Up => {
            let mut chunk = vec![0; CHUNK_BYTES];
            while stream.read(&mut chunk).await? > 0 {}
        }
        Role::Idle | Role::Web => {
            stream.write_u8(0x17).await?;
            let _ = stream.read_u8().await;
        }
    }
    Ok(())
}

/// Reads one TLS record: the hello, whatever segments it comes in.
async fn read_record(stream: &mut TcpStream) -> Result<()> {
    let mut record = vec![0; 5];
    stream.read_exact(&mut record).await?;
    let length = record
        .get(3..5)
        .and_then(|two| two.try_into().ok())
        .map_or(0, u16::from_be_bytes);
    record.resize(usize::from(length), 0);
    stream.read_exact(&mut record).await?;
    Ok(())
}

/// Answers each request head with 200 and 100 bytes.
async fn web(mut stream: TcpStream) -> Result<()> {
    let body = "x".repeat(ANSWER_BYTES);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {ANSWER_BYTES}\r\n\r\n{body}");
    let mut seen = Vec::new();
    while stream.read_buf(&mut seen).await? > 0 {
        while let Some(head) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            seen.drain(..head + 4);
            stream.write_all(answer.as_bytes()).await?;
        }
    }
    Ok(())
}
