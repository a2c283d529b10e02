//! The host of a request, from its Host field or from an absolute-form target.

use std::net::Ipv6Addr;

use allowlist::{HostName, NameError, Refusal};

/// Reads `host` or `host:80`. One trailing dot of the name is dropped: it is the same name, and the router resolves
/// every name as absolute anyway.
///
/// # Errors
/// [`Refusal::IpLiteral`] for an IP address in any spelling, else [`Refusal::InvalidHost`]: an empty name, userinfo,
/// another port, or what no host name can contain.
pub(super) fn read_authority(authority: &[u8]) -> Result<HostName, Refusal> {
    if authority.first() == Some(&b'[') || is_ipv6(authority) {
        return Err(Refusal::IpLiteral);
    }
    let (name, port) = match authority.iter().position(|&b| b == b':') {
        Some(colon) => authority.split_at(colon),
        None => (authority, [].as_slice()),
    };
    let name = name.strip_suffix(b".").unwrap_or(name);
    let name = HostName::from_wire(name).map_err(|error| match error {
        NameError::IpLiteral => Refusal::IpLiteral,
        _ => Refusal::InvalidHost,
    })?;
    match port {
        b"" | b":80" => Ok(name),
        _ => Err(Refusal::InvalidHost),
    }
}

fn is_ipv6(authority: &[u8]) -> bool {
    std::str::from_utf8(authority).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}
