//! Reading a query in place (RFC 1035 section 4.1, RFC 6891 section 6.1).

use allowlist::HostName;
use hickory_proto::op::OpCode;
use hickory_proto::rr::{DNSClass, RecordType};

/// Length of a message header.
pub(super) const HEADER: usize = 12;

/// Longest name on the wire, length octets and the root label included (RFC 1035 section 2.3.4).
pub(super) const MAX_NAME: usize = 255;

/// A message that asks something.
pub(super) struct Query<'a> {
    message: &'a [u8],
    pub(super) id: [u8; 2],
    pub(super) flags: [u8; 2],
    /// The one question, once it has been read.
    pub(super) question: Option<Question<'a>>,
    /// What the OPT record says, once one has been read.
    pub(super) edns: Option<Edns>,
}

/// The message breaks the format.
pub(super) struct Malformed;

impl<'a> Query<'a> {
    /// Looks at the header; `None` for what is no query, by length or by its QR bit.
    pub(super) fn new(message: &'a [u8]) -> Option<Self> {
        match *message {
            [i, d, high, low, _, _, _, _, _, _, _, _, ..] if high & 0x80 == 0 => Some(Self {
                message,
                id: [i, d],
                flags: [high, low],
                question: None,
                edns: None,
            }),
            _ => None,
        }
    }

    pub(super) fn opcode(&self) -> OpCode {
        let [high, _] = self.flags;
        OpCode::from_u8(high >> 3 & 0x0f)
    }

    /// Reads the message to its end. Nothing is allocated, whatever the counts in the header claim. After a fault
    /// `question` and `edns` hold what came before it.
    pub(super) fn read(&mut self) -> Result<(), Malformed> {
        let mut reader = Reader { rest: self.message };
        reader.take(4).ok_or(Malformed)?;
        let mut count = || reader.u16().map(usize::from).ok_or(Malformed);
        let (questions, answers, authorities, additionals) = (count()?, count()?, count()?, count()?);
        // RFC 9619: no query has another number of questions.
        if questions != 1 {
            return Err(Malformed);
        }
        self.question = Some(reader.question().ok_or(Malformed)?);
        for _ in 0..answers + authorities {
            if reader.record()?.kind == RecordType::OPT {
                return Err(Malformed);
            }
        }
        for _ in 0..additionals {
            let record = reader.record()?;
            if record.kind == RecordType::OPT {
                self.read_opt(&record)?;
            }
        }
        if reader.rest.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    fn read_opt(&mut self, record: &Record<'_>) -> Result<(), Malformed> {
        let second = self.edns.is_some();
        let [_, version, flags, _] = record.ttl;
        self.edns = Some(Edns {
            version,
            dnssec_ok: flags & 0x80 != 0,
        });
        // RFC 6891 section 6.1.1 (one only), 6.1.2 (owner is the root). The options of another version could be anything.
        if second || record.name != [0] || version == 0 && !options_are_whole(record.data) {
            return Err(Malformed);
        }
        Ok(())
    }
}

/// What an OPT record says (RFC 6891 section 6.1.3). The client's UDP size does not matter: no answer is over 512 bytes.
#[derive(Clone, Copy)]
pub(super) struct Edns {
    pub(super) version: u8,
    pub(super) dnssec_ok: bool,
}

/// The question.
pub(super) struct Question<'a> {
    /// All its bytes, to be given back as they are.
    pub(super) bytes: &'a [u8],
    /// The name's part of them: good labels, no pointers.
    name: &'a [u8],
    pub(super) kind: RecordType,
    pub(super) class: DNSClass,
}

/// A name that is asked for.
pub(super) enum QueryName {
    Root,
    Host(HostName),
    /// No host name, though a good name in DNS.
    Other,
}

impl Question<'_> {
    /// The name in text form.
    pub(super) fn name(&self) -> QueryName {
        let mut text = [0; MAX_NAME];
        let mut written = 0;
        let mut reader = Reader { rest: self.name };
        while let Some(label) = reader
            .u8()
            .filter(|&length| length > 0)
            .and_then(|length| reader.take(length.into()))
        {
            let slot = text.get_mut(written..).and_then(|free| free.get_mut(..=label.len()));
            let Some([label_slot @ .., dot]) = slot else {
                return QueryName::Other;
            };
            // A dot within a label is not one between labels.
            if label.contains(&b'.') {
                return QueryName::Other;
            }
            label_slot.copy_from_slice(label);
            *dot = b'.';
            written += label.len() + 1;
        }
        match text.get(..written) {
            Some([name @ .., _dot]) => HostName::from_wire(name).map_or(QueryName::Other, QueryName::Host),
            _ => QueryName::Root,
        }
    }
}

/// A resource record.
struct Record<'a> {
    name: &'a [u8],
    kind: RecordType,
    ttl: [u8; 4],
    data: &'a [u8],
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn question(&mut self) -> Option<Question<'a>> {
        let start = self.rest;
        // There is nothing before the question that a pointer could point to.
        let name = self.name(false)?;
        let kind = self.u16()?.into();
        let class = self.u16()?.into();
        Some(Question {
            bytes: start.get(..name.len() + 4)?,
            name,
            kind,
            class,
        })
    }

    fn record(&mut self) -> Result<Record<'a>, Malformed> {
        let mut read = || {
            let name = self.name(true)?;
            let kind = self.u16()?.into();
            let _class = self.u16()?;
            let ttl = self.array()?;
            let length = self.u16()?;
            Some(Record {
                name,
                kind,
                ttl,
                data: self.take(length.into())?,
            })
        };
        read().ok_or(Malformed)
    }

    /// Passes over a name. Pointers are never followed (RUSTSEC-2026-0119 is what that can cost).
    fn name(&mut self, pointer_allowed: bool) -> Option<&'a [u8]> {
        let start = self.rest;
        loop {
            match self.u8()? {
                0 => break,
                length @ 1..=63 => {
                    self.take(length.into())?;
                }
                0xc0.. if pointer_allowed => {
                    self.u8()?;
                    break;
                }
                _ => return None,
            }
        }
        start
            .get(..start.len() - self.rest.len())
            .filter(|name| name.len() <= MAX_NAME)
    }
}

/// Whether the data of an OPT record is a sequence of code, length and value.
fn options_are_whole(data: &[u8]) -> bool {
    let mut reader = Reader { rest: data };
    while !reader.rest.is_empty() {
        let option = reader
            .u16()
            .and_then(|_code| reader.u16())
            .and_then(|length| reader.take(length.into()));
        if option.is_none() {
            return false;
        }
    }
    true
}
