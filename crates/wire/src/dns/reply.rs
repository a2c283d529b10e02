//! Writing a reply.

use super::query::{HEADER, MAX_NAME, Query};
use super::{HostName, Ipv4Addr, RecordType, ResponseCode};
use hickory_proto::rr::DNSClass;

/// Longest reply in bytes: the longest question, SOA, OPT and extended error. It stays within what every client takes
/// over UDP (RFC 1035 section 2.3.4), so that no reply has to be truncated.
pub const MAX_ANSWER: usize = HEADER + QUESTION + RECORD + SOA.len() + RECORD + EXTENDED_ERROR.len();

/// A reply to a query, to be written by one of the methods that end it.
pub(super) struct Reply<'a> {
    query: &'a Query<'a>,
    out: &'a mut Vec<u8>,
}

impl<'a> Reply<'a> {
    /// `out` is empty.
    pub(super) fn new(query: &'a Query<'a>, out: &'a mut Vec<u8>) -> Self {
        out.reserve(MAX_ANSWER);
        Self { query, out }
    }

    /// The name has this address.
    pub(super) fn address(mut self, address: Ipv4Addr) {
        self.begin(ResponseCode::NoError, Section::Answer);
        self.record(QUESTION_NAME, RecordType::A, TTL, &address.octets());
        self.end(ResponseCode::NoError, &[]);
    }

    /// The address whose name this is belongs to `target`.
    pub(super) fn pointer(mut self, target: &HostName) {
        self.begin(ResponseCode::NoError, Section::Answer);
        let mut data = Vec::with_capacity(MAX_NAME);
        for label in target.as_str().split('.') {
            data.push(label.len() as u8);
            data.extend_from_slice(label.as_bytes());
        }
        data.push(0);
        self.record(QUESTION_NAME, RecordType::PTR, TTL, &data);
        self.end(ResponseCode::NoError, &[]);
    }

    /// The name exists, but has nothing of this type. Without SOA and AA it would read as a lame referral
    /// (golang/go #12778).
    pub(super) fn no_data(self) {
        self.negative(ResponseCode::NoError, &[]);
    }

    /// The allowlist does not cover the name.
    pub(super) fn blocked(self, code: ResponseCode) {
        self.negative(code, EXTENDED_ERROR);
    }

    /// The query is not served.
    pub(super) fn error(mut self, code: ResponseCode) {
        self.begin(code, Section::None);
        self.end(code, &[]);
    }

    /// RFC 2308 section 3. The zone is the root: the router is the authority for all names there are.
    fn negative(mut self, code: ResponseCode, options: &[u8]) {
        self.begin(code, Section::Authority);
        self.record(ROOT, RecordType::SOA, NEGATIVE_TTL, SOA);
        self.end(code, options);
    }

    /// Writes the header and the question, for one record in `section`.
    fn begin(&mut self, code: ResponseCode, section: Section) {
        const QR: u8 = 0x80;
        const OPCODE: u8 = 0x78;
        const AA: u8 = 0x04;
        const RD: u8 = 0x01;
        const RA: u8 = 0x80;
        const CD: u8 = 0x10;

        let [id_high, id_low] = self.query.id;
        let [high, low] = self.query.flags;
        let question = self.query.question.as_ref().map(|question| question.bytes);
        // An error is no word on what the zone holds (RFC 8906 section 8.1 expects it without AA).
        let aa = if section == Section::None { 0 } else { AA };
        // Recursion is "available" to those who want it: glibc and Go take RD without RA for a broken server.
        let ra = if high & RD == 0 { 0 } else { RA };
        self.out.extend_from_slice(&[
            id_high,
            id_low,
            QR | high & (OPCODE | RD) | aa,
            // RFC 4035 section 3.2.2: CD is copied. AD stays clear, since nothing is validated.
            ra | low & CD | code.low(),
            0,
            question.is_some().into(),
            0,
            (section == Section::Answer).into(),
            0,
            (section == Section::Authority).into(),
            0,
            self.query.edns.is_some().into(),
        ]);
        self.out.extend_from_slice(question.unwrap_or_default());
    }

    fn record(&mut self, owner: &[u8], kind: RecordType, ttl: u32, data: &[u8]) {
        self.record_of(owner, kind, DNSClass::IN.into(), ttl, data);
    }

    /// Writes the OPT record (RFC 6891 section 6.1.3), if and only if the query has one.
    fn end(mut self, code: ResponseCode, options: &[u8]) {
        const DO: u32 = 0x8000;
        if let Some(edns) = self.query.edns {
            // RFC 3225 section 3: DO is copied.
            let dnssec_ok = if edns.dnssec_ok { DO } else { 0 };
            let flags = u32::from(code.high()) << 24 | dnssec_ok;
            self.record_of(ROOT, RecordType::OPT, UDP_SIZE, flags, options);
        }
    }

    fn record_of(&mut self, owner: &[u8], kind: RecordType, class: u16, ttl: u32, data: &[u8]) {
        self.out.extend_from_slice(owner);
        self.out.extend_from_slice(&u16::from(kind).to_be_bytes());
        self.out.extend_from_slice(&class.to_be_bytes());
        self.out.extend_from_slice(&ttl.to_be_bytes());
        // No data here is longer than a name or SOA.
        self.out.extend_from_slice(&(data.len() as u16).to_be_bytes());
        self.out.extend_from_slice(data);
    }
}

/// Where a reply has its one record, next to OPT.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Answer,
    Authority,
    None,
}

const QUESTION: usize = MAX_NAME + 4;

/// A record with the shortest owner name there is here, without its data: name, type, class, TTL, length.
const RECORD: usize = 1 + 2 + 2 + 4 + 2;

/// The longest question of a PTR answer: a loopback address in reverse.
const REVERSE_QUESTION: usize = "255.255.255.127.in-addr.arpa".len() + 2 + 4;

const _: () = {
    assert!(MAX_ANSWER <= 512);
    assert!(matches!(EXTENDED_ERROR, [0, 15, 0, length, ..] if *length as usize + 4 == EXTENDED_ERROR.len()));
    assert!(HEADER + REVERSE_QUESTION + 1 + RECORD + MAX_NAME + RECORD <= MAX_ANSWER);
};

/// How long an address may be kept, in seconds: a name that is removed from the allowlist goes soon, and a busy client
/// does not ask for each connection.
const TTL: u32 = 30;

/// How long it may be kept that there is no such name, in seconds: a name that is added must work soon (RFC 2308
/// section 5).
const NEGATIVE_TTL: u32 = 10;

/// The data of the SOA record: MNAME as-router.invalid, RNAME nobody.invalid, serial, refresh, retry, expire, minimum.
/// There are no secondaries, so the middle ones mean nothing.
const SOA: &[u8] = b"\x09as-router\x07invalid\0\x06nobody\x07invalid\0\
    \0\0\0\x01\0\0\x0e\x10\0\0\x02\x58\0\x01\x51\x80\0\0\0\x0a";

/// The UDP size that the router offers (DNS flag day 2020). Queries are far smaller.
const UDP_SIZE: u16 = 1232;

/// Extended DNS error (RFC 8914): option 15, its length, info code 15 "Blocked", and text for whoever runs dig.
const EXTENDED_ERROR: &[u8] = b"\0\x0f\0\x32\0\x0fnot on the allowlist of this sandbox (as-router)";

/// The name of the question, as a compressed owner name.
const QUESTION_NAME: &[u8] = &[0xc0, HEADER as u8];

const ROOT: &[u8] = &[0];
