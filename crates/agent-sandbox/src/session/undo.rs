//! Taking away what a session made, in reverse order.

use std::time::Duration;

use futures_util::future::{join, join_all};

use crate::podman::{ApiError, Client, Labelled};

/// The label that names a session, on everything it makes.
pub(crate) const SESSION_LABEL: &str = "agent-sandbox.session";

/// How often the lists are read again: removing a pod can race with podman's own clean-up of a container that ends.
const ROUNDS: u32 = 8;

/// Between two rounds, growing with each: eight of them take 2.8 s.
const PAUSE: Duration = Duration::from_millis(100);

/// Removes everything that carries the session's label, until nothing does.
///
/// # Errors
/// The first thing that could not be removed.
pub(crate) async fn undo_by_label(client: &Client, session: &str) -> Result<(), ApiError> {
    let mut failed = None;
    for round in 0..ROUNDS {
        tokio::time::sleep(PAUSE * round).await;
        let left = Leftovers::of(client, session).await?;
        if left.is_empty() {
            return Ok(());
        }
        failed = left.remove(client).await.err();
        if failed.is_none() {
            return Ok(());
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Removes the parts of a session whose names are known: what is in the networks first, then the network.
///
/// # Errors
/// The first part that could not be removed.
pub(crate) async fn undo_by_name(client: &Client, pod: &str, router: &str, network: &str) -> Result<(), ApiError> {
    let (pod, router) = join(client.remove_pod(pod), client.remove_container(router)).await;
    pod.and(router)?;
    client.remove_network(network).await
}

struct Leftovers {
    pods: Vec<Labelled>,
    containers: Vec<Labelled>,
    networks: Vec<Labelled>,
}

impl Leftovers {
    async fn of(client: &Client, session: &str) -> Result<Self, ApiError> {
        let of_session = |found: Vec<Labelled>| {
            let is_of = |thing: &Labelled| thing.labels.get(SESSION_LABEL).is_some_and(|name| name == session);
            found.into_iter().filter(is_of).collect()
        };
        Ok(Self {
            pods: of_session(client.pods_labelled(SESSION_LABEL).await?),
            containers: of_session(client.containers_labelled(SESSION_LABEL).await?),
            networks: of_session(client.networks_labelled(SESSION_LABEL).await?),
        })
    }

    const fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.containers.is_empty() && self.networks.is_empty()
    }

    async fn remove(&self, client: &Client) -> Result<(), ApiError> {
        let pods = join_all(self.pods.iter().map(|pod| client.remove_pod(&pod.id))).await;
        // Those of a pod went with it.
        let containers = join_all(self.containers.iter().map(|made| client.remove_container(&made.id))).await;
        let networks = join_all(self.networks.iter().map(|network| client.remove_network(&network.id))).await;
        pods.into_iter().chain(containers).chain(networks).collect()
    }
}
