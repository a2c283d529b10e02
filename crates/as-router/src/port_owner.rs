//! Who holds a port: for the error message, best effort.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Processes looked at: a bound for machines with very many.
const MOST_PROCESSES: usize = 10_000;

/// The process that holds `address` for `protocol` (`tcp` or `udp`), as `name (pid 1)`, if /proc shows it to us.
pub(crate) fn find(protocol: &str, address: SocketAddr) -> Option<String> {
    let inode = ["", "6"].iter().find_map(|family| {
        let table = fs::read_to_string(format!("/proc/net/{protocol}{family}")).ok()?;
        holder_inode(&table, protocol == "tcp", address)
    })?;
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten().take(MOST_PROCESSES);
    let holder = processes
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()))
        .find(|entry| holds(&entry.path().join("fd"), &socket))?;
    let name = fs::read_to_string(holder.path().join("comm")).unwrap_or_default();
    let name: String = name
        .trim_end()
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    Some(format!("{name} (pid {})", holder.file_name().to_string_lossy()))
}

/// The inode of the socket that keeps `wanted` from being bound, in the text of /proc/net/{tcp,udp}{,6}.
fn holder_inode(table: &str, listening_only: bool, wanted: SocketAddr) -> Option<u64> {
    /// TCP_LISTEN of the kernel's tcp_states.h.
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        let (address, port) = local.rsplit_once(':')?;
        let matches = u16::from_str_radix(port, 16) == Ok(wanted.port())
            && (!listening_only || state == LISTEN)
            && conflict(read_address(address)?, wanted.ip());
        // After the state: queues, timer, retransmits, uid, timeout, inode.
        if matches { fields.nth(5)?.parse().ok() } else { None }
    })
}

/// The same port on two different addresses is no conflict, unless one of them stands for all.
fn conflict(held: IpAddr, wanted: IpAddr) -> bool {
    held.is_unspecified() || wanted.is_unspecified() || held.to_canonical() == wanted.to_canonical()
}

/// An address as the kernel prints it: in words of 32 bits, each in the machine's byte order.
fn read_address(text: &str) -> Option<IpAddr> {
    let word = |start| Some(u32::from_str_radix(text.get(start..start + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => word(0).map(IpAddr::from),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

fn holds(descriptors: &Path, socket: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(descriptors) else {
        return false;
    };
    descriptors
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(socket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_table_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 111 1 x\n   \
                     1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 222 1 x\n   \
                     2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 333 1 x\n";
        let inode = |listening, address: &str| holder_inode(table, listening, address.parse().unwrap());
        assert_eq!(inode(true, "127.0.0.1:8080"), Some(222));
        assert_eq!(inode(true, "0.0.0.0:8080"), Some(222));
        assert_eq!(inode(false, "127.0.0.1:8080"), Some(111));
        assert_eq!(inode(true, "127.0.0.2:8080"), None, "another address");
        assert_eq!(inode(true, "127.0.0.2:80"), Some(333), "held for all addresses");
        assert_eq!(inode(true, "127.0.0.1:8081"), None);
        let any = "0.0.0.0:80".parse().unwrap();
        assert_eq!(holder_inode("", true, any), None);
        assert_eq!(holder_inode("head\n1: garbage", true, any), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_are_read_in_both_families() {
        assert_eq!(read_address("0100007F"), Some([127, 0, 0, 1].into()));
        let mapped = read_address("0000000000000000FFFF00000100007F").unwrap();
        assert!(conflict(mapped, [127, 0, 0, 1].into()));
        assert_eq!(read_address("xyz"), None);
    }
}
