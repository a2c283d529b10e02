//! What is asked of podman: the fields of its SpecGenerator and PodSpecGenerator that a session sets.
//!
//! Names are podman's own (pkg/specgen/specgen.go, podgen.go). Podman ignores a key that it does not know, so every
//! field that matters is looked at again after create (see [`super::verify`]).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::Serialize;

/// A namespace: how it is made, and from what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Namespace {
    pub(crate) nsmode: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) value: &'static str,
}

impl Namespace {
    /// A network namespace joined to the networks the spec lists.
    pub(crate) const BRIDGE: Self = Self {
        nsmode: "bridge",
        value: "",
    };
    /// The host user's ids shown as the image's user `claude` (1000), so that files keep their owner.
    pub(crate) const KEEP_ID: Self = Self {
        nsmode: "keep-id",
        value: "uid=1000,gid=1000",
    };
}

/// How a container is joined to one network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct NetworkOptions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) static_ips: Vec<Ipv4Addr>,
}

/// A directory of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bind {
    pub(crate) source: String,
    pub(crate) destination: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) options: Vec<&'static str>,
}

impl Bind {
    /// `source` at `destination`, with mount `options`. Submounts come along (`rbind`), as with `podman run -v`.
    pub(crate) fn new(source: &str, destination: &str, options: &[&'static str]) -> Self {
        let options = std::iter::once("rbind").chain(options.iter().copied()).collect();
        Self {
            source: source.to_owned(),
            destination: destination.to_owned(),
            kind: "bind",
            options,
        }
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.options.contains(&"ro")
    }
}

/// A named volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Volume {
    #[serde(rename = "Name")]
    pub(crate) name: String,
    #[serde(rename = "Dest")]
    pub(crate) destination: &'static str,
}

/// A device of the host under its own path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Device {
    pub(crate) path: &'static str,
}

/// Where a container's output is kept besides the attached stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LogConfig {
    pub(crate) driver: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
}

/// Limits (the OCI runtime specification's `linux.resources`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pids: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Limit>,
}

/// One limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Limit {
    pub(crate) limit: i64,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ContainerSpec {
    pub(crate) name: String,
    pub(crate) image: String,
    /// The image as the user named it, which podman shows.
    pub(crate) raw_image_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) pod: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<&'static str, String>,
    /// Whether the host's `*_proxy` variables are handed on (podman's own default is yes).
    pub(crate) httpproxy: bool,
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) user: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) work_dir: String,
    pub(crate) stdin: bool,
    pub(crate) terminal: bool,
    pub(crate) init: bool,
    /// Seconds between the polite and the last signal.
    pub(crate) stop_timeout: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_configuration: Option<LogConfig>,
    #[serde(rename = "sdnotifyMode")]
    pub(crate) sdnotify_mode: &'static str,
    pub(crate) systemd: &'static str,
    pub(crate) cap_add: Vec<&'static str>,
    pub(crate) cap_drop: Vec<&'static str>,
    pub(crate) no_new_privileges: bool,
    pub(crate) read_only_filesystem: bool,
    /// Whether a read-only container gets a writable /tmp, /run and so on.
    pub(crate) read_write_tmpfs: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) selinux_opts: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) devices: Vec<Device>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) mounts: Vec<Bind>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) volumes: Vec<Volume>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) netns: Option<Namespace>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) networks: BTreeMap<String, NetworkOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_limits: Option<Resources>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PodSpec {
    pub(crate) name: String,
    pub(crate) hostname: &'static str,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) netns: Namespace,
    pub(crate) networks: BTreeMap<String, NetworkOptions>,
    pub(crate) dns_server: Vec<Ipv4Addr>,
    /// None from the host: a search list would turn every name into several.
    pub(crate) dns_search: Vec<&'static str>,
    pub(crate) no_manage_hosts: bool,
    pub(crate) userns: Namespace,
    pub(crate) shared_namespaces: Vec<&'static str>,
}
