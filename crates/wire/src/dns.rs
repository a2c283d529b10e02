//! Answers to DNS queries: what the allowlist covers has an address, all else does not exist.
//!
//! Nothing is ever forwarded or looked up, so that no byte of a query leaves the sandbox. hickory-proto says what the
//! numbers mean; the bytes are read and written here, since a query should cost well under a microsecond, and hickory's
//! reader reserves memory for as many questions as a header claims.

mod lookup;
mod query;
mod reply;

use allowlist::{Allowlist, HostName, Plan, Refusal};
use hickory_proto::op::{OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};
use std::net::Ipv4Addr;

use lookup::Found;
use query::{Query, QueryName};
use reply::Reply;

pub use reply::MAX_ANSWER;

/// What there is to answer from.
#[derive(Clone, Copy, Debug)]
pub struct Zone<'a> {
    /// Decides which names exist.
    pub allowlist: &'a Allowlist,
    /// The addresses of those that do, and their names for PTR.
    pub plan: &'a Plan,
    /// Which address is given for an allowed name.
    pub answer: AnswerAddress,
}

/// The address that an allowed name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerAddress {
    /// The name's own loopback address in the plan.
    Loopback,
    /// One address for every name, such as the router's own.
    Fixed(Ipv4Addr),
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is not a query. There is nothing to send: an answer to an answer could go round for ever.
    Ignore,
    /// The name exists; the reply has its data, or says that there is none of the type.
    Answered,
    /// The allowlist does not cover the name; the reply says so.
    Refused {
        /// The name in question, if it is one.
        name: Option<HostName>,
        /// Why it is refused.
        refusal: Refusal,
    },
    /// The query is malformed, or of a kind that is not served; the reply has this code.
    Rejected(ResponseCode),
}

/// Answers the message `query` by what is written into `out`, whatever was in there before.
///
/// A reply has at most [`MAX_ANSWER`] bytes, which every client takes over UDP too, so it is the same for both
/// transports and never truncated.
pub fn respond(query: &[u8], zone: &Zone<'_>, out: &mut Vec<u8>) -> Outcome {
    out.clear();
    let Some(mut query) = Query::new(query) else {
        return Outcome::Ignore;
    };
    let well_formed = query.read();
    let reply = Reply::new(&query, out);
    if query.opcode() != OpCode::Query {
        return reject(reply, ResponseCode::NotImp);
    }
    let (Ok(()), Some(question)) = (well_formed, &query.question) else {
        return reject(reply, ResponseCode::FormErr);
    };
    // RFC 6891 section 6.1.3.
    if query.edns.is_some_and(|edns| edns.version > 0) {
        return reject(reply, ResponseCode::BADVERS);
    }
    if question.class != DNSClass::IN || matches!(question.kind, RecordType::AXFR | RecordType::IXFR) {
        return reject(reply, ResponseCode::Refused);
    }
    let name = match question.name() {
        QueryName::Host(name) => name,
        QueryName::Root => {
            reply.no_data();
            return Outcome::Answered;
        }
        QueryName::Other => {
            reply.blocked(ResponseCode::NXDomain);
            return Outcome::Refused {
                name: None,
                refusal: Refusal::InvalidName,
            };
        }
    };
    match (lookup::find(&name, zone), question.kind) {
        // RFC 8482 section 4.1: ANY may be answered with one of the record sets, and there is but one.
        (Found::Address(address), RecordType::A | RecordType::ANY) => reply.address(address),
        (Found::Pointer(target), RecordType::PTR | RecordType::ANY) => reply.pointer(target),
        // Also AAAA, HTTPS and SVCB of allowed names: NXDOMAIN would take the name away from musl (docker/for-mac #5088).
        (Found::Address(_) | Found::Pointer(_) | Found::Nothing, _) => reply.no_data(),
        (Found::Refused { refusal, code }, _) => {
            reply.blocked(code);
            return Outcome::Refused {
                name: Some(name),
                refusal,
            };
        }
    }
    Outcome::Answered
}

fn reject(reply: Reply<'_>, code: ResponseCode) -> Outcome {
    reply.error(code);
    Outcome::Rejected(code)
}
