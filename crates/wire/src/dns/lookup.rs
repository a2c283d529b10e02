//! What exists under a name.

use super::{AnswerAddress, HostName, Ipv4Addr, Refusal, ResponseCode, Zone};
use allowlist::Service;

/// What a name has.
pub(super) enum Found<'a> {
    /// An allowed name, which has this address.
    Address(Ipv4Addr),
    /// A loopback address of the plan, written as a name, which belongs to this name.
    Pointer(&'a HostName),
    /// No data, but names below it that have some.
    Nothing,
    /// The allowlist does not cover it.
    Refused {
        refusal: Refusal,
        /// NXDOMAIN, or NOERROR for the parent of an allowed name: after NXDOMAIN a resolver need not ask for anything
        /// below it (RFC 8020).
        code: ResponseCode,
    },
}

pub(super) fn find<'a>(name: &HostName, zone: &Zone<'a>) -> Found<'a> {
    let Err(refusal) = zone.allowlist.decide(name, Service::Name) else {
        return Found::Address(match zone.answer {
            AnswerAddress::Loopback => zone.plan.address(name),
            AnswerAddress::Fixed(address) => address,
        });
    };
    match reverse(name.as_str()) {
        Some(Reverse::Above) => return Found::Nothing,
        Some(Reverse::Address(address)) => {
            if let Some(name) = zone.plan.name_at(address) {
                return Found::Pointer(name);
            }
        }
        None => {}
    }
    let code = if zone.allowlist.has_names_below(name) {
        ResponseCode::NoError
    } else {
        ResponseCode::NXDomain
    };
    Found::Refused { refusal, code }
}

/// A name in the part of in-addr.arpa (RFC 1035 section 3.5) that is for loopback addresses.
#[derive(Debug, PartialEq, Eq)]
enum Reverse {
    /// The name of this address.
    Address(Ipv4Addr),
    /// A name above such names.
    Above,
}

fn reverse(name: &str) -> Option<Reverse> {
    if matches!(name, "arpa" | "in-addr.arpa" | "127.in-addr.arpa") {
        return Some(Reverse::Above);
    }
    let mut octets = name.strip_suffix(".127.in-addr.arpa")?.rsplit('.').map(octet);
    let (second, third, fourth) = (octets.next()??, octets.next(), octets.next());
    let (third, fourth) = match (third, fourth) {
        (None, _) => return Some(Reverse::Above),
        (Some(third), None) => return third.map(|_| Reverse::Above),
        (Some(third), Some(fourth)) => (third?, fourth?),
    };
    let address = Ipv4Addr::new(127, second, third, fourth);
    octets.next().is_none().then_some(Reverse::Address(address))
}

/// A number as in-addr.arpa has it: `01` is another name than `1`.
fn octet(label: &str) -> Option<u8> {
    label.parse().ok().filter(|octet: &u8| octet.to_string() == label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverse_names() {
        let address = |name| match reverse(name) {
            Some(Reverse::Address(address)) => Some(address.octets()),
            _ => None,
        };
        assert_eq!(address("4.3.2.127.in-addr.arpa"), Some([127, 2, 3, 4]));
        assert_eq!(address("255.0.64.127.in-addr.arpa"), Some([127, 64, 0, 255]));
        for above in [
            "arpa",
            "in-addr.arpa",
            "127.in-addr.arpa",
            "64.127.in-addr.arpa",
            "0.64.127.in-addr.arpa",
        ] {
            assert_eq!(reverse(above), Some(Reverse::Above), "{above}");
        }
        for other in [
            "com",
            "4.3.2.126.in-addr.arpa",
            "5.4.3.2.127.in-addr.arpa",
            "04.3.2.127.in-addr.arpa",
            "+4.3.2.127.in-addr.arpa",
            "256.3.2.127.in-addr.arpa",
            "4.3.x.127.in-addr.arpa",
            "x.2.127.in-addr.arpa",
            "x127.in-addr.arpa",
            "4.3.2.127.in-addr.arpa.example",
        ] {
            assert_eq!(reverse(other), None, "{other}");
        }
    }
}
