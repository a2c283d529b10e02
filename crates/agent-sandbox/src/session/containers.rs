//! The four parts of a session as podman gets them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::podman::{
    Bind, ContainerSpec, Device, Limit, LogConfig, Namespace, NetworkOptions, PodSpec, Resources, Volume,
};

/// The network all routers share to get out.
pub(crate) const EGRESS_NETWORK: &str = "agent-sandbox-egress";

/// Where router and forwarder find their allowlist, which is also their default.
const POLICY_DIR: &str = "/etc/as-router";

/// The agent's home in the image.
const HOME: &str = "/home/claude";

/// Router and forwarder are one process with a fixed pool of threads: far fewer than this.
const ROUTER_PIDS: i64 = 64;

/// They need 6 MB and 2.5 kB for each connection: room for some fifty thousand, and a stop to anything worse.
const ROUTER_MEMORY: i64 = 128 << 20;

/// Events are kept by podman up to this size for `podman logs`, so that a long session cannot fill the disk.
const ROUTER_LOG: LogConfig = LogConfig {
    driver: "k8s-file",
    size: Some(10 << 20),
};

/// What all parts of one session have in common.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// The session's name, which is also that of its pod and network.
    pub(crate) session: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) router_image: String,
    pub(crate) sandbox_image: String,
    /// The directory of the host that holds the allowlist for router and forwarder.
    pub(crate) policy_dir: String,
    /// The cgroup controllers that can enforce a limit here.
    pub(crate) controllers: Vec<String>,
}

/// What the user asked for.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) words: Vec<String>,
    pub(crate) launch_dir: String,
    pub(crate) home_volume: String,
    pub(crate) terminal: bool,
    /// What the program should know about the terminal.
    pub(crate) env: BTreeMap<&'static str, String>,
}

impl Parts {
    /// A limit that the machine can enforce: podman refuses one that it cannot.
    fn limit(&self, controller: &str, limit: i64) -> Option<Limit> {
        self.controllers
            .iter()
            .any(|name| name == controller)
            .then_some(Limit { limit })
    }

    pub(crate) fn router_name(&self) -> String {
        format!("{}-router", self.session)
    }

    /// The only part that is joined to the outside. It listens on its address inside the session, so that the routers
    /// of other sessions, which share the egress network, cannot use it.
    pub(crate) fn router(&self, address: Ipv4Addr) -> ContainerSpec {
        ContainerSpec {
            netns: Some(Namespace::BRIDGE),
            networks: BTreeMap::from([
                (
                    self.session.clone(),
                    NetworkOptions {
                        static_ips: vec![address],
                    },
                ),
                (EGRESS_NETWORK.to_owned(), NetworkOptions::default()),
            ]),
            command: words(&["--listen", &address.to_string()]),
            ..self.as_router(self.router_name())
        }
    }

    /// Owns the network namespace, the name server and the user ids of the sandbox, and shares only the first: neither
    /// the sandbox nor the forwarder sees the other's processes or memory.
    pub(crate) fn pod(&self, router: Ipv4Addr) -> PodSpec {
        PodSpec {
            name: self.session.clone(),
            hostname: "agent-sandbox",
            labels: self.labels.clone(),
            netns: Namespace::BRIDGE,
            networks: BTreeMap::from([(self.session.clone(), NetworkOptions::default())]),
            dns_server: vec![router],
            dns_search: vec!["."],
            no_manage_hosts: true,
            userns: Namespace::KEEP_ID,
            shared_namespaces: vec!["net", "uts"],
        }
    }

    /// Listens on the loopback addresses of the pod. Root there is nobody on the host.
    pub(crate) fn forwarder(&self, router: Ipv4Addr) -> ContainerSpec {
        ContainerSpec {
            pod: self.session.clone(),
            command: words(&["forward", "--verify-closed", "--router", &router.to_string()]),
            ..self.as_router(format!("{}-forwarder", self.session))
        }
    }

    fn as_router(&self, name: String) -> ContainerSpec {
        ContainerSpec {
            user: "0:0",
            cap_drop: vec!["all"],
            cap_add: vec!["NET_BIND_SERVICE"],
            no_new_privileges: true,
            read_only_filesystem: true,
            mounts: vec![Bind::new(
                &self.policy_dir,
                POLICY_DIR,
                &["ro", "nosuid", "nodev", "noexec", "z"],
            )],
            log_configuration: Some(ROUTER_LOG),
            resource_limits: Some(Resources {
                pids: self.limit("pids", ROUTER_PIDS),
                memory: self.limit("memory", ROUTER_MEMORY),
            }),
            ..self.container(name, &self.router_image)
        }
    }

    /// The command's own container. It keeps podman's other default capabilities only so that nested containers work;
    /// its user has none of them.
    pub(crate) fn sandbox(&self, command: &Command) -> ContainerSpec {
        let mut env = command.env.clone();
        env.insert("DISABLE_AUTOUPDATER", "1".to_owned());
        env.insert("CLAUDE_CODE_TMPDIR", "/var/tmp".to_owned());
        ContainerSpec {
            pod: self.session.clone(),
            command: through_shell(&command.words),
            env,
            stdin: true,
            terminal: command.terminal,
            init: true,
            work_dir: command.launch_dir.clone(),
            cap_drop: vec!["NET_ADMIN", "NET_RAW", "SYS_ADMIN"],
            // No file of the user's is relabelled.
            selinux_opts: vec!["disable"],
            annotations: BTreeMap::from([("io.podman.annotations.label", "disable")]),
            devices: vec![Device { path: "/dev/fuse" }, Device { path: "/dev/net/tun" }],
            volumes: vec![Volume {
                name: command.home_volume.clone(),
                destination: HOME,
            }],
            mounts: vec![Bind::new(&command.launch_dir, &command.launch_dir, &["rw"])],
            // The output goes to the user and nowhere else.
            log_configuration: Some(LogConfig {
                driver: "none",
                size: None,
            }),
            ..self.container(format!("{}-sandbox", self.session), &self.sandbox_image)
        }
    }

    fn container(&self, name: String, image: &str) -> ContainerSpec {
        ContainerSpec {
            name,
            image: image.to_owned(),
            raw_image_name: image.to_owned(),
            labels: self.labels.clone(),
            sdnotify_mode: "container",
            systemd: "false",
            ..ContainerSpec::default()
        }
    }
}

/// The command as its init starts it. The shell replaces itself with the command, or says that it cannot and exits with
/// 127 or 126, as everywhere; podman's own init would exit with 1.
fn through_shell(command: &[String]) -> Vec<String> {
    [words(&["/bin/sh", "-c", r#"exec "$@""#, "sh"]), command.to_vec()].concat()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parts() -> Parts {
        Parts {
            session: "agent-sandbox-1-aa".to_owned(),
            labels: BTreeMap::from([("agent-sandbox.session".to_owned(), "agent-sandbox-1-aa".to_owned())]),
            router_image: "localhost/agent-sandbox-router:dev".to_owned(),
            sandbox_image: "localhost/agent-sandbox:dev".to_owned(),
            policy_dir: "/run/user/1000/agent-sandbox-1-aa/router".to_owned(),
            controllers: vec!["pids".to_owned()],
        }
    }

    fn keys(value: &serde_json::Value, wanted: &serde_json::Value) {
        for (key, want) in wanted.as_object().unwrap() {
            assert_eq!(&value[key], want, "{key}");
        }
    }

    /// The keys are podman's: a wrong one is ignored there without a word (podman-api-rs #175).
    #[test]
    fn podman_gets_the_keys_it_knows() {
        let address = Ipv4Addr::new(10, 89, 1, 2);
        let router = serde_json::to_value(parts().router(address)).unwrap();
        keys(
            &router,
            &json!({
                "name": "agent-sandbox-1-aa-router",
                "netns": {"nsmode": "bridge"},
                "networks": {"agent-sandbox-1-aa": {"static_ips": ["10.89.1.2"]}, "agent-sandbox-egress": {}},
                "cap_drop": ["all"],
                "cap_add": ["NET_BIND_SERVICE"],
                "no_new_privileges": true,
                "read_only_filesystem": true,
                "read_write_tmpfs": false,
                "httpproxy": false,
                "stop_timeout": 0,
                "user": "0:0",
                "command": ["--listen", "10.89.1.2"],
            "resource_limits": {"pids": {"limit": 64}},
            }),
        );
        let pod = serde_json::to_value(parts().pod(address)).unwrap();
        keys(
            &pod,
            &json!({
                "userns": {"nsmode": "keep-id", "value": "uid=1000,gid=1000"},
                "dns_server": ["10.89.1.2"],
                "no_manage_hosts": true,
                "networks": {"agent-sandbox-1-aa": {}},
            }),
        );
        let command = Command {
            words: words(&["bash"]),
            launch_dir: "/home/me/src".to_owned(),
            home_volume: "agent-sandbox-home".to_owned(),
            terminal: true,
            env: BTreeMap::from([("TERM", "xterm-256color".to_owned())]),
        };
        let sandbox = serde_json::to_value(parts().sandbox(&command)).unwrap();
        keys(
            &sandbox,
            &json!({
                "pod": "agent-sandbox-1-aa",
                "terminal": true,
                "stdin": true,
                "init": true,
                "work_dir": "/home/me/src",
                "cap_drop": ["NET_ADMIN", "NET_RAW", "SYS_ADMIN"],
                "cap_add": [],
                "selinux_opts": ["disable"],
                "devices": [{"path": "/dev/fuse"}, {"path": "/dev/net/tun"}],
                "volumes": [{"Name": "agent-sandbox-home", "Dest": "/home/claude"}],
                "mounts": [{
                    "source": "/home/me/src", "destination": "/home/me/src", "type": "bind", "options": ["rbind", "rw"],
                }],
                "env": {"TERM": "xterm-256color", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_TMPDIR": "/var/tmp"},
            }),
        );
        assert!(sandbox.get("user").is_none() && sandbox.get("netns").is_none());
    }
}
