//! The TCP listeners that follow the allowlist: opened and closed as a reload asks for it, never moved.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use allowlist::HostName;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::listener::{ListenError, listen};

/// One listener and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    pub(crate) listen: SocketAddr,
    pub(crate) name: HostName,
    pub(crate) port: u16,
}

/// The open listeners of `host:port` entries.
#[derive(Default)]
pub(crate) struct Routes {
    open: HashMap<Route, AbortHandle>,
}

/// New listeners that are open but not served yet.
pub(crate) struct Prepared(Vec<(Route, TcpListener)>);

impl Routes {
    /// Opens what `wanted` has and the open routes have not. Nothing changes yet.
    ///
    /// # Errors
    /// When one cannot be opened; those that were are closed again.
    pub(crate) fn prepare(&self, wanted: &[Route]) -> Result<Prepared, ListenError> {
        let new = wanted.iter().filter(|route| !self.open.contains_key(route));
        let opened = new.map(|route| Ok((route.clone(), listen(route.listen)?)));
        Ok(Prepared(opened.collect::<Result<_, ListenError>>()?))
    }

    /// Serves the prepared listeners, each by the task that `serve` starts, and closes those that `wanted` lacks.
    pub(crate) fn commit(
        &mut self,
        wanted: &[Route],
        prepared: Prepared,
        serve: impl Fn(&Route, TcpListener) -> AbortHandle,
    ) {
        let wanted: HashSet<&Route> = wanted.iter().collect();
        self.open.retain(|route, task| {
            let keep = wanted.contains(route);
            if !keep {
                task.abort();
            }
            keep
        });
        for (route, listener) in prepared.0 {
            let task = serve(&route, listener);
            self.open.insert(route, task);
        }
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.open.values().for_each(AbortHandle::abort);
    }
}
