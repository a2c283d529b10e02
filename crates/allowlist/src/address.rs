//! Which addresses the router may dial for an allowed name.
//!
//! An allowed name can be made to resolve to anything by whoever owns it: without this check it would be a door to the
//! host's loopback, to cloud metadata services and back into the router.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::Refusal;

/// The rules for upstream addresses.
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    deny_private: bool,
    exceptions: Vec<Network>,
}

impl AddressPolicy {
    /// The default rules, with private ranges refused too if `deny_private`, and `exceptions` dialled nevertheless. Of
    /// the router's own addresses they open loopback ones and those that stand alone: a range such as 10.0.0.0/8 is
    /// meant for the network around the router, and one name that led back into the router would loop until no
    /// connection is left.
    #[must_use]
    pub const fn new(deny_private: bool, exceptions: Vec<Network>) -> Self {
        Self {
            deny_private,
            exceptions,
        }
    }

    /// Whether the router may dial `address`. `is_own` tells whether an address is one of the router's own; dialling
    /// those would loop (sniproxy #26, #279).
    ///
    /// # Errors
    /// [`Refusal::AddressDenied`].
    pub fn vet(&self, address: IpAddr, is_own: impl Fn(IpAddr) -> bool) -> Result<(), Refusal> {
        let real = embedded(address);
        let mut exceptions = self
            .exceptions
            .iter()
            .filter(|network| network.contains(address) || network.contains(real))
            .peekable();
        // An IPv6 address that stands for an IPv4 one is judged as both.
        let denied = never_dialled(real) || never_dialled(address) || (self.deny_private && is_private(real));
        if denied && exceptions.peek().is_none() {
            return Err(Refusal::AddressDenied);
        }
        let own_opened = exceptions.any(|network| real.is_loopback() || network.is_single());
        if !own_opened && (is_own(address) || (real != address && is_own(real))) {
            return Err(Refusal::AddressDenied);
        }
        Ok(())
    }
}

/// An address range in CIDR notation, such as `10.0.0.0/8` or `fd00::/8`; an address alone is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether it is a range of one address.
    const fn is_single(&self) -> bool {
        self.prefix == if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// Whether `address` lies in the range. An IPv4 range holds no IPv6 address and the other way round.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (network, address, width) = match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (u128::from(network.to_bits()), u128::from(address.to_bits()), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
            _ => return false,
        };
        let host_bits = u32::from(128.min(width - self.prefix.min(width)));
        // A shift by 128 bits (`::/0`) leaves nothing to compare.
        network.checked_shr(host_bits).unwrap_or(0) == address.checked_shr(host_bits).unwrap_or(0)
    }
}

/// Text that is no address range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address range: write an IP address, or one with a prefix length such as 10.0.0.0/8")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) if prefix.bytes().all(|b| b.is_ascii_digit()) => prefix.parse().map_err(|_| error())?,
            Some(_) => return Err(error()),
            None => width,
        };
        if prefix > width {
            Err(error())
        } else {
            Ok(Self { address, prefix })
        }
    }
}

/// The IPv4 address that an IPv6 one stands for, or the address itself: IPv4-mapped (RFC 4291 section 2.5.5.2),
/// IPv4-compatible (2.5.5.1), NAT64 (RFC 6052 section 2.1; RFC 8215 for local use), 6to4 (RFC 3056 section 2).
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [s0, s1, s2, s3, s4, s5, s6, s7] = v6.segments();
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)));
    match [s0, s1, s2, s3, s4, s5] {
        [0, 0, 0, 0, 0, 0xffff] => v4(s6, s7),
        // `::` and `::1` are IPv6 addresses of their own.
        [0, 0, 0, 0, 0, 0] if s6 != 0 => v4(s6, s7),
        [0x64, 0xff9b, 0, 0, 0, 0] => v4(s6, s7),
        [0x64, 0xff9b, 1, ..] => v4(s6, s7),
        [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}

/// Metadata services outside 169.254/16: Alibaba Cloud, Azure (WireServer), Oracle Cloud (classic).
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Addresses that no upstream has: the host's own services, the local link, metadata services, groups.
fn never_dialled(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_link_local() // 169.254/16, RFC 3927; also cloud metadata and pasta's way to the host
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.octets().first() == Some(&0) // "this network", RFC 791; Linux takes 0.0.0.0 for loopback
                || v4.octets().first().is_some_and(|&first| first >= 240) // reserved, RFC 1112
                || METADATA_V4.contains(&v4)
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unicast_link_local()
                || (v6.segments().first().copied().unwrap_or(0) & 0xffc0) == 0xfec0 // site-local, RFC 3879
                || matches!(v6.segments(), [0xfd00, 0xec2, ..]) // AWS: instance and pod credentials, resolver, time
                || v6 == Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254) // Google Compute Engine metadata
        }
    }
}

/// Ranges that are not on the public Internet: RFC 1918, RFC 6598 (carrier NAT), RFC 4193.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || matches!(v4.octets(), [100, second, ..] if second & 0xc0 == 64),
        IpAddr::V6(v6) => v6.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vet(policy: &AddressPolicy, address: &str) -> Result<(), Refusal> {
        let own: IpAddr = "192.0.2.2".parse().unwrap();
        policy.vet(address.parse().unwrap(), |address| address == own)
    }

    #[test]
    fn addresses_that_are_never_dialled() {
        for address in [
            "127.0.0.1",
            "127.64.3.4",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.1.2",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.2.2",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "64:ff9b::6464:64c8",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:192.0.2.2",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
        ] {
            assert_eq!(
                vet(&AddressPolicy::default(), address),
                Err(Refusal::AddressDenied),
                "{address}"
            );
        }
    }

    #[test]
    fn public_and_private_addresses_are_dialled() {
        for address in [
            "203.0.113.7",
            "10.1.2.3",
            "192.168.1.1",
            "100.64.0.1",
            "2001:db8::1",
            "fd12::1",
            "::ffff:203.0.113.7",
        ] {
            assert_eq!(vet(&AddressPolicy::default(), address), Ok(()), "{address}");
        }
    }

    #[test]
    fn private_ranges_can_be_denied() {
        let policy = AddressPolicy::new(true, vec![]);
        for address in [
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.0.1",
            "fd12::1",
            "::ffff:10.0.0.1",
        ] {
            assert_eq!(vet(&policy, address), Err(Refusal::AddressDenied), "{address}");
        }
        for address in ["203.0.113.7", "172.32.0.1", "100.128.0.1", "2001:db8::1"] {
            assert_eq!(vet(&policy, address), Ok(()), "{address}");
        }
    }

    #[test]
    fn exceptions_open_exactly_their_range() {
        let policy = AddressPolicy::new(true, vec!["10.1.0.0/16".parse().unwrap(), "127.0.0.1".parse().unwrap()]);
        assert_eq!(vet(&policy, "10.1.255.255"), Ok(()));
        assert_eq!(vet(&policy, "10.2.0.0"), Err(Refusal::AddressDenied));
        assert_eq!(vet(&policy, "127.0.0.1"), Ok(()));
        assert_eq!(vet(&policy, "127.0.0.2"), Err(Refusal::AddressDenied));
    }

    #[test]
    fn a_range_of_exceptions_does_not_lead_back_into_the_router() {
        let policy = |exceptions: &str| AddressPolicy::new(true, vec![exceptions.parse().unwrap()]);
        let own_network = policy("192.0.2.0/24");
        assert_eq!(vet(&own_network, "192.0.2.2"), Err(Refusal::AddressDenied));
        assert_eq!(vet(&own_network, "::ffff:192.0.2.2"), Err(Refusal::AddressDenied));
        assert_eq!(vet(&own_network, "192.0.2.3"), Ok(()));
        assert_eq!(vet(&policy("192.0.2.2"), "192.0.2.2"), Ok(()), "asked for by name");
        let loopback = policy("127.0.0.0/8").vet([127, 0, 0, 1].into(), |_| true);
        assert_eq!(loopback, Ok(()), "all of it is the router's own");
    }

    #[test]
    fn networks_parse_strictly() {
        for (text, inside, outside) in [
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("::/0", "ff::1", "1.2.3.4"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
        ] {
            let network: Network = text.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{text} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{text} {outside}");
        }
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10/8",
            "x",
            "10.0.0.0/8/8",
            "10.0.0.0/-1",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
