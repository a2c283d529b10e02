//! HTTP/1 by hand: requests are written byte by byte as a test wants them, answers are read strictly.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::netns::Namespace;

/// How long a read may take.
pub const LIMIT: Duration = Duration::from_secs(15);

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The head as text.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Connects from `namespace`, with time limits set.
#[track_caller]
pub fn connect(namespace: &Namespace, to: SocketAddr) -> TcpStream {
    let stream = namespace
        .enter(|| TcpStream::connect_timeout(&to, LIMIT))
        .unwrap_or_else(|error| panic!("connect to {to}: {error}"));
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads one answer: head, then as many bytes as Content-Length says, or else to the end of the stream.
#[track_caller]
pub fn read_answer(stream: &mut TcpStream) -> Answer {
    let head = read_head(stream);
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status in {head:?}"));
    let length = field(&head, "content-length").map(|value| value.parse::<usize>().unwrap());
    let mut body = Vec::new();
    match length {
        _ if status < 200 || status == 204 || status == 304 => {}
        Some(length) => {
            body.resize(length, 0);
            stream.read_exact(&mut body).expect("the whole body");
        }
        None => {
            stream.read_to_end(&mut body).expect("a clean end of the body");
        }
    }
    Answer { status, head, body }
}

/// The value of a field of a head.
#[must_use]
pub fn field(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
        .next()
}

/// Reads up to and with the empty line.
#[track_caller]
pub fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            end => panic!("{end:?} after {:?}", String::from_utf8_lossy(&head)),
        }
    }
    String::from_utf8(head).unwrap()
}

/// How a stream ends when nothing more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// FIN.
    Clean,
    /// RST or another error.
    Reset,
}

/// Reads to the end, whichever it is.
#[track_caller]
pub fn read_to_end(stream: &mut TcpStream) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => (bytes, End::Clean),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("no end within {} s after {} bytes", LIMIT.as_secs(), bytes.len())
        }
        Err(_) => (bytes, End::Reset),
    }
}

/// A server that records every byte it gets on each connection and answers `reply` once for each empty line that ends
/// a head. The receiver gets a connection's bytes when it has ended.
#[must_use]
pub fn recorder(listener: TcpListener, reply: &'static [u8]) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            thread::spawn(move || {
                let _ = sender.send(record(stream, reply));
            });
        }
    });
    receiver
}

fn record(mut stream: TcpStream, reply: &[u8]) -> Vec<u8> {
    let _ = stream.set_read_timeout(Some(LIMIT));
    let mut bytes = Vec::new();
    let mut answered = 0;
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        bytes.extend(&buffer[..length]);
        let heads = bytes.windows(4).filter(|window| window == b"\r\n\r\n").count();
        while answered < heads {
            answered += 1;
            if stream.write_all(reply).is_err() {
                return bytes;
            }
        }
    }
    bytes
}
