//! What of a contender an image must hold at least: program, modules, and the shared libraries that they need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Contender, Settings};

const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// Bytes of all files together.
pub(crate) fn image_bytes(who: Contender, settings: &Settings) -> Result<u64> {
    let programs: &[&str] = match who {
        Contender::Nginx | Contender::NginxKept => &["/usr/sbin/nginx", STREAM_MODULE],
        Contender::HaProxy => &["/usr/sbin/haproxy"],
        Contender::SniProxy => &["/usr/sbin/sniproxy"],
        Contender::Socat => &["/usr/bin/socat"],
        Contender::Dnsmasq => &["/usr/sbin/dnsmasq"],
        Contender::SeedPath => &["/usr/sbin/dnsmasq", "/usr/sbin/nginx", STREAM_MODULE, "/usr/bin/socat"],
        Contender::Router | Contender::Path | Contender::Splice | Contender::Direct => &[],
    };
    let mut files: BTreeSet<PathBuf> = programs.iter().map(PathBuf::from).collect();
    if who.is_ours() {
        files.insert(settings.router.clone());
    }
    for program in files.clone() {
        files.extend(libraries(&program)?);
    }
    files
        .iter()
        .map(|file| {
            Ok(fs::metadata(file)
                .with_context(|| format!("no {}", file.display()))?
                .len())
        })
        .sum()
}

/// What ldd(1) says; nothing for a static program.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .context("cannot execute ldd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = text
        .split_whitespace()
        .filter(|word| word.starts_with('/') && !word.ends_with(':'));
    paths
        .map(|path| fs::canonicalize(path).with_context(|| format!("no {path}")))
        .collect()
}
