//! The calls a session makes.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::Path;

use podman_api::models::{ListContainer, ListPodsReport, Network};
use podman_api::opts::{
    ContainerDeleteOpts, ContainerListFilter, ContainerListOpts, NetworkCreateOpts, NetworkListFilter, NetworkListOpts,
    PodListFilter, PodListOpts, PullOpts, VolumeCreateOpts,
};

use super::error::ApiError;
use super::inspect::Inspected;
use super::raw::{Attached, Raw};
use super::spec::{ContainerSpec, PodSpec};
use super::verify::{Differences, verify, verify_pod};

/// A podman service.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    api: podman_api::Podman,
    raw: Raw,
}

/// Something that carries a label, with all of its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Labelled {
    pub(crate) id: String,
    pub(crate) labels: HashMap<String, String>,
}

impl Client {
    /// The service that listens on `socket`. Nothing is sent yet.
    pub(crate) fn new(socket: &Path) -> Self {
        Self {
            api: podman_api::Podman::unix(socket),
            raw: Raw {
                socket: socket.to_path_buf(),
            },
        }
    }

    /// The version of the service's API, which is podman's own.
    pub(crate) async fn version(&self) -> Result<String, ApiError> {
        self.raw.ping().await
    }

    /// Pulls an image and hands on what podman says meanwhile.
    pub(crate) async fn pull(&self, image: &str, mut say: impl FnMut(&str)) -> Result<(), ApiError> {
        use futures_util::StreamExt;
        let options = PullOpts::builder().reference(image).build();
        let images = self.api.images();
        let mut reports = images.pull(&options);
        while let Some(report) = reports.next().await {
            let report = report?;
            if let Some(message) = report.error.filter(|message| !message.is_empty()) {
                return Err(ApiError::Refused { status: 500, message });
            }
            if let Some(line) = report.stream {
                say(line.trim());
            }
        }
        Ok(())
    }

    /// Creates the volume unless it is there.
    pub(crate) async fn ensure_volume(&self, name: &str) -> Result<(), ApiError> {
        if self.api.volumes().get(name).exists().await? {
            return Ok(());
        }
        let options = VolumeCreateOpts::builder().name(name).build();
        match self.api.volumes().create(&options).await.map_err(ApiError::from) {
            // Another session made it meanwhile.
            Err(error) if error.is_conflict() || self.api.volumes().get(name).exists().await? => {
                let _ = error;
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// Creates the shared network to the outside unless it is there.
    pub(crate) async fn ensure_egress_network(&self, name: &str) -> Result<(), ApiError> {
        if self.api.networks().get(name).exists().await? {
            return Ok(());
        }
        let options = NetworkCreateOpts::builder()
            .name(name)
            .driver("bridge")
            .dns_enabled(true)
            .build();
        match self.api.networks().create(&options).await.map_err(ApiError::from) {
            Err(error) if error.is_conflict() || self.api.networks().get(name).exists().await? => {
                let _ = error;
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// Creates a network with no way out and no name service of podman's own, and returns its IPv4 subnet.
    pub(crate) async fn create_internal_network(
        &self,
        name: &str,
        labels: &HashMap<String, String>,
    ) -> Result<Subnet, ApiError> {
        let labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let options = NetworkCreateOpts::builder()
            .name(name)
            .driver("bridge")
            .internal(true)
            .dns_enabled(false)
            .ipv6_enabled(false)
            .labels(labels)
            .build();
        let network = self.api.networks().create(&options).await?;
        subnet_of(&network)
    }

    /// Creates a container and compares what podman made of it with what was asked.
    pub(crate) async fn create_container(&self, spec: &ContainerSpec) -> Result<Result<String, Differences>, ApiError> {
        let id = self.raw.create_container(spec).await?;
        let made: Inspected = self.raw.inspect_container(&id).await?;
        Ok(verify(spec, &made).map(|()| id))
    }

    /// Creates a pod. Nothing in it runs yet.
    pub(crate) async fn create_pod(&self, spec: &PodSpec) -> Result<String, ApiError> {
        self.raw.create_pod(spec).await
    }

    /// The pod's own container, which holds the namespaces of all others.
    pub(crate) async fn infra_of(&self, pod: &str) -> Result<String, ApiError> {
        Ok(self.raw.inspect_pod(pod).await?.infra)
    }

    /// Compares what podman made of a pod, whose own container is `infra`, with what was asked.
    pub(crate) async fn verify_pod(&self, infra: &str, spec: &PodSpec) -> Result<Result<(), Differences>, ApiError> {
        let made: Inspected = self.raw.inspect_container(infra).await?;
        Ok(verify_pod(spec, &made))
    }

    /// Prepares a created container and connects to its standard streams.
    pub(crate) async fn attach(&self, id: &str) -> Result<Attached, ApiError> {
        self.raw.attach(id).await
    }

    /// Starts a container's command.
    pub(crate) async fn start(&self, id: &str) -> Result<(), ApiError> {
        Ok(self.api.containers().get(id).start(None).await?)
    }

    /// Waits for a container to end and returns its exit code.
    pub(crate) async fn wait(&self, id: &str) -> Result<i32, ApiError> {
        self.raw.wait(id).await
    }

    /// Tells a container the size of its terminal.
    pub(crate) async fn resize(&self, id: &str, columns: u16, rows: u16) -> Result<(), ApiError> {
        self.raw.resize(id, columns, rows).await
    }

    /// Removes a container, running or not. One that is not there is removed.
    pub(crate) async fn remove_container(&self, id: &str) -> Result<(), ApiError> {
        let options = ContainerDeleteOpts::builder()
            .force(true)
            .volumes(true)
            .timeout(0)
            .build();
        gone(
            self.api
                .containers()
                .get(id)
                .delete(&options)
                .await
                .map_err(ApiError::from),
        )
    }

    /// Removes a pod with all its containers, running or not. One that is not there is removed.
    pub(crate) async fn remove_pod(&self, id: &str) -> Result<(), ApiError> {
        gone(self.api.pods().get(id).remove().await.map(drop).map_err(ApiError::from))
    }

    /// Removes a network. One that is not there is removed.
    pub(crate) async fn remove_network(&self, name: &str) -> Result<(), ApiError> {
        gone(
            self.api
                .networks()
                .get(name)
                .remove()
                .await
                .map(drop)
                .map_err(ApiError::from),
        )
    }

    /// Every container, in whatever state, that carries the label.
    pub(crate) async fn containers_labelled(&self, label: &str) -> Result<Vec<Labelled>, ApiError> {
        let filter = ContainerListFilter::LabelKey(label.to_owned());
        let options = ContainerListOpts::builder().all(true).filter([filter]).build();
        let found = self.api.containers().list(&options).await?;
        let labelled = |ListContainer { id, labels, .. }: ListContainer| labelled(id, labels);
        Ok(found.into_iter().filter_map(labelled).collect())
    }

    /// Every pod that carries the label.
    pub(crate) async fn pods_labelled(&self, label: &str) -> Result<Vec<Labelled>, ApiError> {
        let options = PodListOpts::builder()
            .filter([PodListFilter::LabelKey(label.to_owned())])
            .build();
        let found = self.api.pods().list(&options).await?;
        let labelled = |ListPodsReport { id, labels, .. }: ListPodsReport| labelled(id, labels);
        Ok(found.into_iter().filter_map(labelled).collect())
    }

    /// Every network that carries the label, by name.
    pub(crate) async fn networks_labelled(&self, label: &str) -> Result<Vec<Labelled>, ApiError> {
        let options = NetworkListOpts::builder()
            .filter([NetworkListFilter::LabelKey(label.to_owned())])
            .build();
        let found = self.api.networks().list(&options).await?;
        Ok(found
            .into_iter()
            .filter_map(|network| labelled(network.name, network.labels))
            .collect())
    }
}

fn labelled(id: Option<String>, labels: Option<HashMap<String, String>>) -> Option<Labelled> {
    Some(Labelled {
        id: id?,
        labels: labels.unwrap_or_default(),
    })
}

fn gone(result: Result<(), ApiError>) -> Result<(), ApiError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}

/// An IPv4 network of podman's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    network: Ipv4Addr,
    prefix: u8,
}

impl Subnet {
    /// The last address of the subnet, which is the router's. Podman hands out addresses from the first one on, so that
    /// the pod, which starts at the same time, cannot be given it.
    pub(crate) fn router(&self) -> Ipv4Addr {
        let hosts = u32::MAX.checked_shr(u32::from(self.prefix)).unwrap_or(0);
        Ipv4Addr::from((u32::from(self.network) | hosts).saturating_sub(1))
    }
}

/// A network that is not closed, or not as expected, is no place for a sandbox.
fn subnet_of(network: &Network) -> Result<Subnet, ApiError> {
    let unexpected = |text: &str| ApiError::Unexpected(format!("the session's network {text}"));
    if network.internal != Some(true) || network.dns_enabled == Some(true) || network.ipv_6_enabled == Some(true) {
        return Err(unexpected("is not internal, or has a name service or IPv6"));
    }
    let subnets = network.subnets.as_deref().unwrap_or_default();
    let [subnet] = subnets else {
        return Err(unexpected("has not exactly one subnet"));
    };
    let text = subnet.subnet.as_deref().unwrap_or_default();
    parse_subnet(text).ok_or_else(|| unexpected(&format!("has the subnet {text:?}")))
}

/// Three addresses are needed: the bridge, the router, the pod.
fn parse_subnet(text: &str) -> Option<Subnet> {
    let (network, prefix) = text.split_once('/')?;
    let subnet = Subnet {
        network: network.parse().ok()?,
        prefix: prefix.parse().ok()?,
    };
    (8..=29).contains(&subnet.prefix).then_some(subnet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_router_has_the_last_address() {
        for (text, router) in [
            ("10.89.3.0/24", Some("10.89.3.254")),
            ("192.168.1.8/29", Some("192.168.1.14")),
        ] {
            assert_eq!(
                parse_subnet(text).map(|subnet| subnet.router().to_string()).as_deref(),
                router
            );
        }
        for text in ["", "10.89.3.0", "10.89.3.0/30", "10.0.0.0/4", "fd00::/64", "10.89.3/24"] {
            assert_eq!(parse_subnet(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_closed_network_will_do() {
        let subnet = podman_api::models::Subnet {
            subnet: Some("10.89.3.0/24".to_owned()),
            gateway: None,
            lease_range: None,
        };
        let closed = Network {
            internal: Some(true),
            dns_enabled: Some(false),
            subnets: Some(vec![subnet]),
            ..serde_json::from_str("{}").unwrap()
        };
        assert!(subnet_of(&closed).is_ok());
        for open in [
            Network {
                internal: None,
                ..closed.clone()
            },
            Network {
                internal: Some(false),
                ..closed.clone()
            },
            Network {
                dns_enabled: Some(true),
                ..closed.clone()
            },
            Network {
                ipv_6_enabled: Some(true),
                ..closed.clone()
            },
            Network {
                subnets: None,
                ..closed
            },
        ] {
            assert!(subnet_of(&open).is_err());
        }
    }
}
