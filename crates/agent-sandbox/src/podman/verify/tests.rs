//! What real podmans answered for a session's containers, and what must not pass for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::podman::spec::{Bind, Device, Namespace, NetworkOptions, Resources, Volume};

const VERSIONS: [&str; 2] = ["podman-4.3", "podman-5.4"];

fn golden(version: &str, name: &str) -> Value {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/podman/golden");
    let text = std::fs::read_to_string(format!("{dir}/{version}/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn read(value: &Value) -> Inspected {
    serde_json::from_value(value.clone()).unwrap()
}

fn as_router() -> ContainerSpec {
    ContainerSpec {
        user: "0:0",
        cap_drop: vec!["all"],
        cap_add: vec!["NET_BIND_SERVICE"],
        no_new_privileges: true,
        read_only_filesystem: true,
        mounts: vec![Bind::new("/run/user/1000/pol", "/etc/as-router", &["ro", "z"])],
        ..ContainerSpec::default()
    }
}

fn router() -> ContainerSpec {
    ContainerSpec {
        netns: Some(Namespace::BRIDGE),
        networks: BTreeMap::from(["s1", "egress"].map(|name| (name.to_owned(), NetworkOptions::default()))),
        ..as_router()
    }
}

fn forwarder() -> ContainerSpec {
    ContainerSpec {
        pod: "s1".to_owned(),
        ..as_router()
    }
}

fn sandbox() -> ContainerSpec {
    ContainerSpec {
        pod: "s1".to_owned(),
        stdin: true,
        cap_drop: vec!["NET_ADMIN", "NET_RAW", "SYS_ADMIN"],
        devices: vec![Device { path: "/dev/fuse" }, Device { path: "/dev/net/tun" }],
        volumes: vec![Volume {
            name: "home".to_owned(),
            destination: "/home/claude",
        }],
        mounts: vec![Bind::new("/home/dev/src/repo", "/home/dev/src/repo", &["rw"])],
        ..ContainerSpec::default()
    }
}

fn pod() -> PodSpec {
    PodSpec {
        name: "s1".to_owned(),
        hostname: "agent-sandbox",
        labels: BTreeMap::new(),
        netns: Namespace::BRIDGE,
        networks: BTreeMap::from([("s1".to_owned(), NetworkOptions::default())]),
        dns_server: vec!["10.89.0.254".parse().unwrap()],
        dns_search: vec!["."],
        no_manage_hosts: true,
        userns: Namespace::KEEP_ID,
        shared_namespaces: vec!["net", "uts"],
    }
}

#[test]
fn what_real_podmans_made_is_accepted() {
    for version in VERSIONS {
        for (name, spec) in [("router", router()), ("forwarder", forwarder()), ("sandbox", sandbox())] {
            let checked = verify(&spec, &read(&golden(version, name)));
            assert!(checked.is_ok(), "{version} {name}: {}", checked.unwrap_err());
        }
        let checked = verify_pod(&pod(), &read(&golden(version, "infra")));
        assert!(checked.is_ok(), "{version} pod: {}", checked.unwrap_err());
    }
}

/// Sets one field of a golden answer.
fn with(mut value: Value, path: &str, new: Value) -> Inspected {
    *value.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = new;
    read(&value)
}

/// podman-api-rs #175: a flag that podman ignored, or a configuration file that added something.
#[test]
fn no_difference_that_matters_is_overlooked() {
    for version in VERSIONS {
        let cases = [
            ("/HostConfig/SecurityOpt", json!([])),
            (
                "/HostConfig/SecurityOpt",
                json!(["no-new-privileges", "seccomp=unconfined"]),
            ),
            ("/HostConfig/ReadonlyRootfs", json!(false)),
            ("/HostConfig/Privileged", json!(true)),
            ("/HostConfig/NetworkMode", json!("host")),
            ("/HostConfig/PidMode", json!("host")),
            ("/HostConfig/PidMode", json!("container:abc")),
            ("/HostConfig/IpcMode", json!("host")),
            ("/HostConfig/IpcMode", json!("container:abc")),
            ("/HostConfig/UTSMode", json!("host")),
            ("/HostConfig/UsernsMode", json!("host")),
            ("/HostConfig/Devices", json!([{"PathOnHost": "/dev/kvm"}])),
            ("/HostConfig/ExtraHosts", json!(["evil:1.2.3.4"])),
            ("/HostConfig/Dns", json!(["9.9.9.9"])),
            ("/HostConfig/PortBindings", json!({"80/tcp": []})),
            ("/Config/User", json!("1000")),
            ("/Config/Tty", json!(true)),
            ("/Config/Env", json!(["https_proxy=http://proxy:3128"])),
            ("/EffectiveCaps", json!(["CAP_NET_BIND_SERVICE", "CAP_NET_RAW"])),
            ("/BoundingCaps", json!(["CAP_NET_BIND_SERVICE", "CAP_SYS_ADMIN"])),
            ("/BoundingCaps", json!([])),
            ("/Mounts", json!([])),
            ("/Mounts/0/RW", json!(true)),
            ("/Mounts/0/Source", json!("/home")),
            ("/NetworkSettings/Networks", json!({"s1": {}})),
            (
                "/NetworkSettings/Networks",
                json!({"s1": {}, "egress": {}, "podman": {}}),
            ),
        ];
        for (path, new) in cases {
            let mut golden = golden(version, "router");
            if path == "/BoundingCaps" && new == json!([]) {
                golden["EffectiveCaps"] = json!([]);
            }
            let made = with(golden, path, new.clone());
            assert!(verify(&router(), &made).is_err(), "{version}: {path} = {new}");
        }
        for (path, new) in [
            ("/BoundingCaps/0", json!("CAP_NET_ADMIN")),
            ("/BoundingCaps/0", json!("CAP_SYS_PTRACE")),
            ("/HostConfig/NetworkMode", json!("bridge")),
            ("/HostConfig/SecurityOpt", json!(["no-new-privileges"])),
            ("/Mounts/1/Destination", json!("/")),
            ("/Mounts/0/Name", json!("other-volume")),
            ("/Pod", json!("")),
        ] {
            let made = with(golden(version, "sandbox"), path, new.clone());
            assert!(verify(&sandbox(), &made).is_err(), "{version}: {path} = {new}");
        }
        for (path, new) in [
            ("/HostConfig/Dns", json!(["10.89.0.254", "9.9.9.9"])),
            ("/HostConfig/Dns", json!([])),
            ("/HostConfig/IDMappings/UidMap", json!(["0:0:65536"])),
            ("/HostConfig/IDMappings/GidMap", json!(["0:0:1", "1000:0:1"])),
            ("/HostConfig/UsernsMode", json!("host")),
            ("/HostConfig/NetworkMode", json!("host")),
            ("/NetworkSettings/Networks", json!({"s1": {}, "egress": {}})),
        ] {
            let made = with(golden(version, "infra"), path, new.clone());
            assert!(verify_pod(&pod(), &made).is_err(), "{version}: {path} = {new}");
        }
    }
}

#[test]
fn limits_are_compared_where_they_were_asked_for() {
    let spec = ContainerSpec {
        resource_limits: Some(Resources {
            pids: Some(Limit { limit: 64 }),
            memory: None,
        }),
        ..router()
    };
    let golden = golden("podman-5.4", "router");
    assert!(verify(&spec, &read(&golden)).is_err());
    assert!(verify(&spec, &with(golden, "/HostConfig/PidsLimit", json!(64))).is_ok());
}

/// marhkb/pods #789: a number became a name, a list became null.
#[test]
fn an_answer_of_another_podman_is_read() {
    for text in [
        r#"{"Config":{"StopSignal":"SIGTERM","User":"0:0"},"Mounts":null,"EffectiveCaps":null}"#,
        r#"{"Config":{"StopSignal":15},"HostConfig":{"Dns":null,"SecurityOpt":null,"IDMappings":null}}"#,
        "{}",
    ] {
        let made: Inspected = serde_json::from_str(text).unwrap();
        assert!(verify(&router(), &made).is_err(), "{text}");
    }
}
