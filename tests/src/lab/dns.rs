//! A DNS client that can send anything, and reads answers with a decoder that is not the router's.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, RecordType};
use hickory_proto::serialize::binary::BinDecodable;

use super::netns::Namespace;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(5);

/// A question in bytes: id 0x1234, RD set, class IN, no OPT record.
#[must_use]
pub fn question(name: &str, kind: RecordType) -> Vec<u8> {
    question_with(name, u16::from(kind), 1)
}

/// The same for any type and class.
#[must_use]
pub fn question_with(name: &str, kind: u16, class: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(class.to_be_bytes());
    bytes
}

/// Appends an OPT record (RFC 6891 section 6.1.2) with a payload size of 1232.
#[must_use]
pub fn with_opt(mut question: Vec<u8>, version: u8, dnssec_ok: bool) -> Vec<u8> {
    question[11] += 1;
    question.extend([
        0,
        0,
        41,
        0x04,
        0xd0,
        0,
        version,
        if dnssec_ok { 0x80 } else { 0 },
        0,
        0,
        0,
    ]);
    question
}

/// Asks over UDP; `None` when nothing comes within 5 s.
pub fn ask_udp(from: &Namespace, server: SocketAddr, question: &[u8]) -> Option<Vec<u8>> {
    let socket = from.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    socket.connect(server).unwrap();
    socket.send(question).unwrap();
    let mut answer = vec![0; 65535];
    let length = socket.recv(&mut answer).ok()?;
    answer.truncate(length);
    Some(answer)
}

/// Asks over a TCP connection of its own.
pub fn ask_tcp(from: &Namespace, server: SocketAddr, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = from.enter(|| TcpStream::connect_timeout(&server, LIMIT))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&framed(question))?;
    read_framed(&mut stream)
}

/// The message with its length in front (RFC 1035 section 4.2.2).
#[must_use]
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(message);
    bytes
}

/// Reads one message with a length in front.
pub fn read_framed(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// Decodes with hickory.
#[track_caller]
#[must_use]
pub fn decode(answer: &[u8]) -> Message {
    Message::from_bytes(answer).unwrap_or_else(|error| panic!("hickory cannot read the answer ({error}): {answer:?}"))
}

/// The A records of an answer.
#[must_use]
pub fn addresses(message: &Message) -> Vec<Ipv4Addr> {
    let address = |data: &RData| if let RData::A(a) = data { Some(a.0) } else { None };
    message
        .answers
        .iter()
        .filter_map(|record| address(&record.data))
        .collect()
}

/// The one address that the router gives for a name.
#[track_caller]
pub fn resolve(from: &Namespace, server: Ipv4Addr, name: &str) -> Ipv4Addr {
    let server = SocketAddr::from((server, 53));
    let answer = ask_udp(from, server, &question(name, RecordType::A)).expect("an answer by UDP");
    let message = decode(&answer);
    assert_eq!(
        message.metadata.response_code,
        ResponseCode::NoError,
        "{name}: {message}"
    );
    let addresses = addresses(&message);
    assert_eq!(addresses.len(), 1, "{name}: {message}");
    addresses[0]
}

/// A name server inside the test: knows A records, remembers every question.
#[derive(Clone, Debug)]
pub struct Responder {
    state: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    records: Vec<(String, Ipv4Addr, u32)>,
    asked: Vec<(String, u16)>,
    silent: bool,
}

impl Responder {
    /// Serves `socket` until the run ends.
    #[must_use]
    pub fn start(socket: UdpSocket) -> Self {
        let responder = Self { state: Arc::default() };
        let server = responder.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                if let Some(answer) = server.answer(&buffer[..length]) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        responder
    }

    /// Sets the one address of a name and its TTL.
    pub fn set(&self, name: &str, address: Ipv4Addr, ttl: u32) {
        let mut state = self.state.lock().unwrap();
        state.records.retain(|(known, ..)| known != name);
        state.records.push((name.to_owned(), address, ttl));
    }

    /// Stops answering, or starts again.
    pub fn be_silent(&self, silent: bool) {
        self.state.lock().unwrap().silent = silent;
    }

    /// The questions so far: name and type.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, u16)> {
        self.state.lock().unwrap().asked.clone()
    }

    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let message = Message::from_bytes(question).ok()?;
        let query = message.queries.first()?;
        let name = query.name().to_ascii().to_lowercase().trim_end_matches('.').to_owned();
        let kind = u16::from(query.query_type());
        let mut state = self.state.lock().unwrap();
        state.asked.push((name.clone(), kind));
        if state.silent {
            return None;
        }
        // The header and the question again, as a recursive server's answer.
        let end = 12 + name.len() + 2 + 4;
        let mut answer = question.get(..end)?.to_vec();
        answer[2..4].copy_from_slice(&[0x81, 0x80]);
        answer[6..12].fill(0);
        let record = state.records.iter().find(|(known, ..)| *known == name);
        match record {
            Some((_, address, ttl)) if kind == 1 => {
                answer[7] = 1;
                answer.extend([0xc0, 12, 0, 1, 0, 1]);
                answer.extend(ttl.to_be_bytes());
                answer.extend([0, 4]);
                answer.extend(address.octets());
            }
            Some(_) => {}
            None => answer[3] |= 3,
        }
        Some(answer)
    }
}
