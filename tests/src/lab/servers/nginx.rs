//! nginx with TLS, HTTP/1.1 and HTTP/2, git behind fcgiwrap, and a small backend for slow and upgraded connections.

use std::fs;

use super::directory;
use crate::lab::certs::Authority;
use crate::lab::netns::Namespace;
use crate::lab::process::Process;

/// Size of the large file: a few seconds through a slow reader, and hundreds of pipes full.
pub const LARGE: usize = 32 << 20;

/// Sizes of the files `/file/N`: around one byte, one TLS record and one pipe.
const SIZES: [usize; 10] = [0, 1, 2, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, LARGE];

pub(super) fn start(origin: &Namespace, authority: &Authority) -> Vec<Process> {
    let names = [
        "web.example",
        "api.example",
        "git.example",
        "mixed.example",
        "xn--bcher-kva.example",
    ];
    let more = [
        "under_score.example",
        "a.b.c.deep.example",
        "*.dns.example",
        "*.bad.example",
        "forbidden.example",
    ];
    let _paths = authority.issue("web", &[&names[..], &more[..]].concat());
    let _paths = authority.issue("plain", &["plain.example"]);
    let www = directory("www");
    fs::create_dir_all(www.join("file")).unwrap();
    fs::create_dir_all(www.join("upload")).unwrap();
    for size in SIZES {
        fs::write(www.join("file").join(size.to_string()), file_bytes(size)).unwrap();
    }
    let nginx = directory("nginx");
    fs::write(nginx.join("nginx.conf"), include_str!("files/nginx.conf")).unwrap();
    fs::write(nginx.join("backend.py"), include_str!("files/backend.py")).unwrap();
    vec![
        Process::start(
            "backend",
            origin.command("/usr/bin/python3").arg("/run/lab/nginx/backend.py"),
        ),
        Process::start(
            "fcgiwrap",
            origin
                .command("fcgiwrap")
                .args(["-c", "2", "-s", "unix:/run/lab/nginx/fcgi.sock"]),
        ),
        Process::start(
            "nginx",
            origin
                .command("nginx")
                .args(["-e", "stderr", "-c", "/run/lab/nginx/nginx.conf"]),
        ),
    ]
}

/// The bytes of `/file/SIZE`: xorshift noise, so that a lost, doubled or moved byte shows.
#[must_use]
pub fn file_bytes(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ size as u64;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
