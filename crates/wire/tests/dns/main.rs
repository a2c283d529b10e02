//! DNS answers, byte for byte and as hickory-proto reads them.

// clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod malformed;
mod query;
mod second_opinion;

use allowlist::{Allowlist, HostName, Plan};
use hickory_proto::op::Message;
use std::net::Ipv4Addr;
use std::sync::LazyLock;
use wire::dns::{AnswerAddress, Outcome, Zone, respond};

/// The policy of most tests.
static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    Policy::new(
        "api.anthropic.com
        .example.com
        raw.githubusercontent.com
        db.example.org:5432
        _dmarc.a-b.example.net",
    )
});

/// An allowlist with its plan.
struct Policy {
    allowlist: Allowlist,
    plan: Plan,
}

impl Policy {
    fn new(text: &str) -> Self {
        let allowlist = Allowlist::parse(text.as_bytes(), "test")
            .result
            .expect("a good allowlist");
        let plan = Plan::new(&allowlist).expect("a plan");
        Self { allowlist, plan }
    }

    fn zone(&self) -> Zone<'_> {
        Zone {
            allowlist: &self.allowlist,
            plan: &self.plan,
            answer: AnswerAddress::Loopback,
        }
    }

    /// What is answered to `query`, by bytes, and as hickory reads it.
    fn ask(&self, query: &[u8]) -> (Outcome, Vec<u8>, Message) {
        let mut out = b"from the query before".to_vec();
        let outcome = respond(query, &self.zone(), &mut out);
        let message = Message::from_vec(&out).expect("hickory reads the reply");
        (outcome, out, message)
    }

    fn address(&self, name: &str) -> Ipv4Addr {
        self.plan.address(&host(name))
    }
}

fn host(name: &str) -> HostName {
    HostName::from_wire(name.as_bytes()).expect("a host name")
}
