//! The TCP listeners that follow the allowlist: opened and closed as a reload asks for it, never moved.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use allowlist::{Forward, HostName, Plan};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::cli::{ForwarderArgs, RouterArgs};
use crate::dns::Answer;
use crate::listener::{ListenError, listen};
use crate::socket::Opening;

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
    open: HashMap<Route, (Arc<TcpListener>, AbortHandle)>,
}

/// New listeners that are open but not served yet.
pub(crate) struct Prepared(Vec<(Route, Arc<TcpListener>)>);

impl Routes {
    /// Opens what `wanted` has and the open routes have not. Nothing changes yet. A socket that is to lead to another
    /// host (only with one address for all names) is taken over as it is: a second one cannot be opened beside it.
    ///
    /// # Errors
    /// When one cannot be opened; those that were are closed again.
    pub(crate) fn prepare(&self, wanted: &[Route]) -> Result<Prepared, ListenError> {
        let sockets: HashMap<SocketAddr, &Arc<TcpListener>> = self
            .open
            .iter()
            .map(|(route, (listener, _))| (route.listen, listener))
            .collect();
        let new = wanted.iter().filter(|route| !self.open.contains_key(route));
        let opened = new.map(|route| {
            let listener = match sockets.get(&route.listen) {
                Some(&open) => Arc::clone(open),
                None => listen(route.listen, Opening::Any)?,
            };
            Ok((route.clone(), listener))
        });
        Ok(Prepared(opened.collect::<Result<_, ListenError>>()?))
    }

    /// Serves the prepared listeners, each by the task that `serve` starts, and closes those that `wanted` lacks.
    pub(crate) fn commit(
        &mut self,
        wanted: &[Route],
        prepared: Prepared,
        serve: impl Fn(&Route, Arc<TcpListener>) -> AbortHandle,
    ) {
        let wanted: HashSet<&Route> = wanted.iter().collect();
        self.open.retain(|route, (_, task)| {
            let keep = wanted.contains(route);
            if !keep {
                task.abort();
            }
            keep
        });
        for (route, listener) in prepared.0 {
            let task = serve(&route, Arc::clone(&listener));
            self.open.insert(route, (listener, task));
        }
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.open.values().for_each(|(_, task)| task.abort());
    }
}

/// The router's listeners for `host:port` entries. With a forwarder each entry has a router port of its own; without
/// one, clients come to the real port of the router's only address.
///
/// # Errors
/// When one port would have to lead to two hosts.
pub(crate) fn of_router(plan: &Plan, args: &RouterArgs) -> Result<Vec<Route>, PortConflict> {
    let forwards = plan.forwards();
    let route = |forward: &Forward, port| Route {
        listen: SocketAddr::new(args.listen, port),
        name: forward.name.clone(),
        port: forward.port,
    };
    let Answer::Fixed(address) = args.answer else {
        return Ok(forwards
            .iter()
            .map(|forward| route(forward, forward.router_port))
            .collect());
    };
    let own = [
        (args.dns_port, "DNS"),
        (args.common.tls_port, "TLS"),
        (args.common.http_port, "HTTP"),
    ];
    let mut taken: HashMap<u16, String> = own.map(|(port, service)| (port, service.to_owned())).into();
    let mut routes = Vec::new();
    for forward in forwards {
        let second = format!("{}:{} (line {})", forward.name, forward.port, forward.line);
        if let Some(first) = taken.insert(forward.port, second.clone()) {
            return Err(PortConflict {
                address,
                port: forward.port,
                first,
                second,
            });
        }
        routes.push(route(forward, forward.port));
    }
    Ok(routes)
}

/// The forwarder's listeners for `host:port` entries; the port of each route is the router's.
pub(crate) fn of_forwarder(plan: &Plan, args: &ForwarderArgs) -> Vec<Route> {
    let own = plan
        .forwards()
        .iter()
        .filter(|forward| !shares_a_listener(forward, args));
    own.map(|forward| Route {
        listen: SocketAddr::new(forward.address.into(), forward.port),
        name: forward.name.clone(),
        port: forward.router_port,
    })
    .collect()
}

/// The forwarder's `host:443` and `host:80` entries: raw forwards on one address of a listener that serves all of
/// 127/8, by the address and port that the client dials.
pub(crate) fn diverted(plan: &Plan, args: &ForwarderArgs) -> HashMap<SocketAddr, u16> {
    let shared = plan
        .forwards()
        .iter()
        .filter(|forward| shares_a_listener(forward, args));
    shared
        .map(|forward| {
            (
                SocketAddr::new(forward.address.into(), forward.port),
                forward.router_port,
            )
        })
        .collect()
}

fn shares_a_listener(forward: &Forward, args: &ForwarderArgs) -> bool {
    [args.common.tls_port, args.common.http_port].contains(&forward.port)
}

/// With one address for all names, one port can only stand for one host.
#[derive(Debug, thiserror::Error)]
#[error(
    "with --answer {address}, port {port} can only lead to one host, but {first} and {second} need it; remove one, or \
     use a forwarder (as-router forward), where every name has an address of its own"
)]
pub(crate) struct PortConflict {
    address: Ipv4Addr,
    port: u16,
    first: String,
    second: String,
}
