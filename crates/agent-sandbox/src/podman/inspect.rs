//! What podman says it made: the fields of `podman inspect` that decide what a container may do.
//!
//! Only these are read, and every one may be missing: the whole answer differs between podman 4.3 and 5.x (a name
//! for a number, null for an empty list), and the check treats a missing field as a difference where it matters.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// The part of `podman pod inspect` that leads to the pod's own container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct InspectedPod {
    #[serde(rename = "InfraContainerID")]
    pub(super) infra: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Inspected {
    pub(super) pod: String,
    pub(super) config: Config,
    pub(super) host_config: HostConfig,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) effective_caps: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) bounding_caps: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) mounts: Vec<Mount>,
    pub(super) network_settings: NetworkSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Config {
    pub(super) user: String,
    pub(super) tty: bool,
    pub(super) open_stdin: bool,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) env: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct HostConfig {
    pub(super) privileged: bool,
    pub(super) readonly_rootfs: bool,
    pub(super) network_mode: String,
    pub(super) pid_mode: String,
    pub(super) ipc_mode: String,
    #[serde(rename = "UTSMode")]
    pub(super) uts_mode: String,
    pub(super) userns_mode: String,
    pub(super) pids_limit: i64,
    pub(super) memory: i64,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) security_opt: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) devices: Vec<InspectedDevice>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) extra_hosts: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) dns: Vec<String>,
    #[serde(rename = "IDMappings", deserialize_with = "null_is_empty")]
    pub(super) id_mappings: IdMappings,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) port_bindings: BTreeMap<String, serde::de::IgnoredAny>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct IdMappings {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) uid_map: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) gid_map: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct InspectedDevice {
    pub(super) path_on_host: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Mount {
    #[serde(rename = "Type")]
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) source: String,
    pub(super) destination: String,
    #[serde(rename = "RW")]
    pub(super) read_write: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct NetworkSettings {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) networks: BTreeMap<String, serde::de::IgnoredAny>,
}

fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
