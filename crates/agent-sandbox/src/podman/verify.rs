//! Whether podman made the container that was asked for.
//!
//! Podman ignores what it does not understand in a request, and its configuration files add what nobody asked for
//! (volumes, capabilities, devices). So the made container is compared in every field that decides what it may do,
//! and one that differs is never started.

use std::collections::BTreeSet;
use std::fmt;

use super::inspect::{Inspected, Mount};
use super::spec::{ContainerSpec, Limit, PodSpec};

/// The fields that are not as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Differences(Vec<String>);

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for Differences {}

/// Capabilities that no container of a session may have, whatever podman's configuration adds: with one of these the
/// sandbox could change its own network or mounts.
const NEVER: [&str; 8] = [
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_SYS_ADMIN",
    "CAP_SYS_PTRACE",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_BPF",
    "CAP_DAC_READ_SEARCH",
];

/// Compares what was `made` with what was asked for.
///
/// # Errors
/// Every difference that decides what the container may do.
pub(crate) fn verify(spec: &ContainerSpec, made: &Inspected) -> Result<(), Differences> {
    let mut differences = Vec::new();
    let mut same = |what: &str, wanted: &dyn fmt::Debug, got: &dyn fmt::Debug, equal: bool| {
        if !equal {
            differences.push(format!("{what} is {got:?} instead of {wanted:?}"));
        }
    };
    let host = &made.host_config;
    same("privileged", &false, &host.privileged, !host.privileged);
    let read_only = spec.read_only_filesystem;
    same(
        "read-only root",
        &read_only,
        &host.readonly_rootfs,
        read_only == host.readonly_rootfs,
    );
    same(
        "terminal",
        &spec.terminal,
        &made.config.tty,
        spec.terminal == made.config.tty,
    );
    same(
        "standard input",
        &spec.stdin,
        &made.config.open_stdin,
        spec.stdin == made.config.open_stdin,
    );
    if !spec.user.is_empty() {
        same("user", &spec.user, &made.config.user, spec.user == made.config.user);
    }
    let hardened = host
        .security_opt
        .iter()
        .any(|option| option.starts_with("no-new-privileges"));
    same(
        "no-new-privileges",
        &spec.no_new_privileges,
        &hardened,
        spec.no_new_privileges == hardened,
    );
    let unconfined: Vec<_> = host
        .security_opt
        .iter()
        .filter(|o| o.contains("seccomp=unconfined"))
        .collect();
    same("seccomp", &"podman's profile", &unconfined, unconfined.is_empty());
    if let Some(limits) = &spec.resource_limits {
        if let Some(Limit { limit }) = limits.pids {
            same("pids limit", &limit, &host.pids_limit, limit == host.pids_limit);
        }
        if let Some(Limit { limit }) = limits.memory {
            same("memory limit", &limit, &host.memory, limit == host.memory);
        }
    }
    same(
        "published ports",
        &"none",
        &host.port_bindings.keys(),
        host.port_bindings.is_empty(),
    );
    same("extra hosts", &"none", &host.extra_hosts, host.extra_hosts.is_empty());
    same("name servers", &"none of its own", &host.dns, host.dns.is_empty());
    let proxies: Vec<_> = made.config.env.iter().filter(|line| is_proxy(line)).collect();
    same("proxy variables", &"none", &proxies, proxies.is_empty());

    // Rootless podman binds devices instead, and then does not list them.
    let asked: BTreeSet<&str> = spec.devices.iter().map(|device| device.path).collect();
    let extra: Vec<_> = host
        .devices
        .iter()
        .map(|d| d.path_on_host.as_str())
        .filter(|path| !asked.contains(path))
        .collect();
    same("devices", &asked, &extra, extra.is_empty());

    namespaces(spec, made, &mut same);
    capabilities(spec, made, &mut same);
    mounts(spec, made, &mut same);
    if differences.is_empty() {
        Ok(())
    } else {
        Err(Differences(differences))
    }
}

/// Compares the pod's own container, which holds the namespaces of all others, with what was asked for.
///
/// # Errors
/// Every difference that decides what the pod's containers may reach.
pub(crate) fn verify_pod(spec: &PodSpec, infra: &Inspected) -> Result<(), Differences> {
    let mut differences = Vec::new();
    let mut same = |what: &str, wanted: &dyn fmt::Debug, got: &dyn fmt::Debug, equal: bool| {
        if !equal {
            differences.push(format!("the pod's {what} is {got:?} instead of {wanted:?}"));
        }
    };
    let host = &infra.host_config;
    let servers: Vec<String> = spec.dns_server.iter().map(ToString::to_string).collect();
    same("name server", &servers, &host.dns, servers == host.dns);
    same("extra hosts", &"none", &host.extra_hosts, host.extra_hosts.is_empty());
    same(
        "published ports",
        &"none",
        &host.port_bindings.keys(),
        host.port_bindings.is_empty(),
    );
    same("privileged", &false, &host.privileged, !host.privileged);
    same(
        "network namespace",
        &"bridge",
        &host.network_mode,
        host.network_mode == "bridge",
    );
    let wanted: BTreeSet<&String> = spec.networks.keys().collect();
    let got: BTreeSet<&String> = infra.network_settings.networks.keys().collect();
    same("networks", &wanted, &got, wanted == got);
    for (what, mode) in [("user namespace", &host.userns_mode), ("uts namespace", &host.uts_mode)] {
        same(what, &"not the host's", mode, mode != "host");
    }
    // Container id : id in podman's own user namespace, where 0 is the user : count.
    let maps = &host.id_mappings;
    for (what, map) in [("user ids", &maps.uid_map), ("group ids", &maps.gid_map)] {
        same(
            what,
            &"1000:0:1 among them",
            map,
            map.iter().any(|line| line == "1000:0:1"),
        );
        same(
            what,
            &"no other use of the user's own",
            map,
            map.iter().filter(|line| line.contains(":0:")).count() == 1,
        );
    }
    if differences.is_empty() {
        Ok(())
    } else {
        Err(Differences(differences))
    }
}

type Same<'a> = dyn FnMut(&str, &dyn fmt::Debug, &dyn fmt::Debug, bool) + 'a;

fn namespaces(spec: &ContainerSpec, made: &Inspected, same: &mut Same<'_>) {
    let host = &made.host_config;
    for (what, mode) in [
        ("pid namespace", &host.pid_mode),
        ("ipc namespace", &host.ipc_mode),
        ("uts namespace", &host.uts_mode),
        ("network namespace", &host.network_mode),
        ("user namespace", &host.userns_mode),
    ] {
        same(what, &"not the host's", mode, mode != "host");
    }
    let shared = |mode: &str| mode.starts_with("container:") || mode.starts_with("ns:");
    same("pid namespace", &"its own", &host.pid_mode, !shared(&host.pid_mode));
    same("ipc namespace", &"its own", &host.ipc_mode, !shared(&host.ipc_mode));
    if spec.pod.is_empty() {
        same(
            "network namespace",
            &"bridge",
            &host.network_mode,
            host.network_mode == "bridge",
        );
        let wanted: BTreeSet<&String> = spec.networks.keys().collect();
        let got: BTreeSet<&String> = made.network_settings.networks.keys().collect();
        same("networks", &wanted, &got, wanted == got);
    } else {
        same(
            "network namespace",
            &"the pod's",
            &host.network_mode,
            host.network_mode.starts_with("container:"),
        );
        same("pod", &"the session's", &made.pod, !made.pod.is_empty());
    }
}

fn capabilities(spec: &ContainerSpec, made: &Inspected, same: &mut Same<'_>) {
    let prefixed = |name: &&str| format!("CAP_{name}");
    let got: BTreeSet<&String> = made.bounding_caps.iter().chain(&made.effective_caps).collect();
    if spec.cap_drop.iter().any(|name| name.eq_ignore_ascii_case("all")) {
        let wanted: BTreeSet<String> = spec.cap_add.iter().map(prefixed).collect();
        same(
            "capabilities",
            &wanted,
            &got,
            got.iter().all(|name| wanted.contains(*name)),
        );
        same(
            "capabilities",
            &wanted,
            &got,
            wanted.iter().all(|name| got.contains(name)),
        );
    } else {
        let dropped: BTreeSet<String> = spec.cap_drop.iter().map(prefixed).collect();
        let kept: Vec<_> = got
            .iter()
            .filter(|name| dropped.contains(**name) || NEVER.contains(&name.as_str()))
            .collect();
        same("capabilities", &"none of these", &kept, kept.is_empty());
    }
}

/// Mounts that podman makes itself are not listed. Anything else was asked for, or comes from a configuration file.
fn mounts(spec: &ContainerSpec, made: &Inspected, same: &mut Same<'_>) {
    let binds = spec.mounts.iter().map(|bind| Mount {
        kind: "bind".to_owned(),
        source: bind.source.clone(),
        destination: bind.destination.clone(),
        read_write: !bind.is_read_only(),
        ..Mount::default()
    });
    let volumes = spec.volumes.iter().map(|volume| Mount {
        kind: "volume".to_owned(),
        name: volume.name.clone(),
        destination: volume.destination.to_owned(),
        read_write: true,
        ..Mount::default()
    });
    let wanted: Vec<Mount> = binds.chain(volumes).collect();
    for mount in &wanted {
        same(
            "mounts",
            mount,
            &made.mounts,
            made.mounts.iter().any(|got| is_same_mount(mount, got)),
        );
    }
    for got in &made.mounts {
        same(
            "mounts",
            &"nothing more",
            got,
            wanted.iter().any(|mount| is_same_mount(mount, got)),
        );
    }
}

/// Where a volume's data lies is podman's business.
fn is_same_mount(wanted: &Mount, got: &Mount) -> bool {
    let same_source = if wanted.kind == "volume" {
        wanted.name == got.name
    } else {
        wanted.source == got.source
    };
    same_source
        && wanted.kind == got.kind
        && wanted.destination == got.destination
        && wanted.read_write == got.read_write
}

/// The host's proxy cannot be reached from inside, and nothing inside needs one.
fn is_proxy(line: &str) -> bool {
    let name = line.split('=').next().unwrap_or_default().to_ascii_lowercase();
    matches!(name.as_str(), "http_proxy" | "https_proxy" | "ftp_proxy" | "all_proxy")
}

#[cfg(test)]
mod tests;
