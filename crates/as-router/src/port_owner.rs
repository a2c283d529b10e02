//! Who holds a port: for the error message, best effort.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// Processes looked at: a bound for machines with very many.
const MOST_PROCESSES: usize = 10_000;

/// The process that holds `address` for `protocol` (`tcp` or `udp`), as `name (pid 1)`, if /proc shows it to us.
pub(crate) fn find(protocol: &str, address: SocketAddr) -> Option<String> {
    let inode = ["", "6"].iter().find_map(|family| {
        let table = fs::read_to_string(format!("/proc/net/{protocol}{family}")).ok()?;
        holder_inode(&table, protocol == "tcp", address.port())
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

/// The inode of the socket on `port` in the text of /proc/net/{tcp,udp}.
fn holder_inode(table: &str, listening_only: bool, port: u16) -> Option<u64> {
    /// TCP_LISTEN of the kernel's tcp_states.h.
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        let (_, local_port) = local.rsplit_once(':')?;
        let matches = u16::from_str_radix(local_port, 16) == Ok(port) && (!listening_only || state == LISTEN);
        // After the state: queues, timer, retransmits, uid, timeout, inode.
        if matches { fields.nth(5)?.parse().ok() } else { None }
    })
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
    fn the_kernels_table_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 111 1 x\n   \
                     1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 222 1 x\n";
        assert_eq!(holder_inode(table, true, 8080), Some(222));
        assert_eq!(holder_inode(table, false, 8080), Some(111));
        assert_eq!(holder_inode(table, true, 8081), None);
        assert_eq!(holder_inode("", true, 80), None);
        assert_eq!(holder_inode("head\n1: garbage", true, 80), None);
    }
}
