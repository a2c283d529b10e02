//! DNS queries by plain blocking sockets: the sender's own cost is what limits the rate of queries.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::tally::Tally;
use super::{Options, PATIENCE, Report};

/// Keeps `options.connections` queries under way.
pub(super) fn udp(options: &Options) -> Result<Report> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(options.to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let tally = Tally::new(options);
    let mut query = query(&options.name);
    let mut sent_at = vec![Instant::now(); options.connections];
    let mut buffer = [0; 1500];
    for slot in 0..options.connections {
        send(&socket, &mut query, &mut sent_at, slot)?;
    }
    let mut waiting = options.connections;
    while waiting > 0 {
        let read = socket.recv(&mut buffer).context("no answer for 10 s")?;
        let answer = buffer.get(..read).unwrap_or_default();
        let slot = check(answer, &query)? as usize;
        tally.done(sent_at.get(slot).copied().context("an answer to no query")?);
        if tally.more() {
            send(&socket, &mut query, &mut sent_at, slot)?;
        } else {
            waiting -= 1;
        }
    }
    Ok(tally.report())
}

/// One connection after the other, `each` queries on it, one at a time.
pub(super) fn tcp(options: &Options, each: usize) -> Result<Report> {
    let tally = Rc::new(Tally::new(options));
    let query = query(&options.name);
    let length = u16::try_from(query.len())?.to_be_bytes();
    let framed = [length.as_slice(), &query].concat();
    let mut buffer = [0; 1500];
    while tally.more() {
        let mut stream = TcpStream::connect(options.to).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        for _ in 0..each {
            let start = Instant::now();
            stream.write_all(&framed).context("send the query")?;
            let mut length = [0; 2];
            stream.read_exact(&mut length).context("read the length")?;
            let answer = buffer
                .get_mut(..usize::from(u16::from_be_bytes(length)))
                .context("a huge answer")?;
            stream.read_exact(answer).context("read the answer")?;
            check(answer, &query)?;
            tally.done(start);
        }
    }
    Ok(tally.report())
}

fn send(socket: &UdpSocket, query: &mut [u8], sent_at: &mut [Instant], slot: usize) -> Result<()> {
    if let (Some(id), Some(at)) = (query.get_mut(..2), sent_at.get_mut(slot)) {
        id.copy_from_slice(&u16::try_from(slot)?.to_be_bytes());
        *at = Instant::now();
    }
    socket.send(query).context("send the query")?;
    Ok(())
}

/// The answer's id, if it answers the question with an address.
fn check(answer: &[u8], query: &[u8]) -> Result<u16> {
    let [high, low, flags, code, _, _, 0, 1, ..] = answer else {
        anyhow::bail!("an answer without one address")
    };
    ensure!(
        flags & 0x80 != 0 && code & 0x0f == 0,
        "no good answer: flags {flags:#x} {code:#x}"
    );
    ensure!(
        answer.get(12..query.len() - 11) == query.get(12..query.len() - 11),
        "an answer to another question"
    );
    Ok(u16::from_be_bytes([*high, *low]))
}

/// An A query with EDNS (1,232 bytes), as resolvers send it.
fn query(name: &str) -> Vec<u8> {
    let mut query = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01".to_vec();
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).unwrap_or(63));
        query.extend(label.bytes());
    }
    query.extend(b"\0\0\x01\0\x01");
    query.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\0");
    query
}
