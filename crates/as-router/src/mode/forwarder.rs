//! Forwarder mode: inside the sandbox, from the loopback addresses of the plan to the router.
//!
//! It decides nothing: the router judges every connection, also those that a process in the sandbox makes to it
//! directly. The forwarder only has to lead each address to the right port of the router.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use allowlist::{Allowlist, Diagnostics, Refusal};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::{StartError, reload_failed, reloaded, report_ready, report_warnings, spawn};
use crate::cli::ForwarderArgs;
use crate::event::{Event, EventLog, Mode, Protocol};
use crate::limits::{Limits, raise_descriptor_limit};
use crate::listener::{Limit, Permit, accept_loop, listen};
use crate::policy::{LoadError, Policy, load_again, load_aside};
use crate::relay::{End, Pair, Relay, Traffic};
use crate::routes::{self, Route, Routes};
use crate::signals::{Signal, Signals};
use crate::socket::{self, Opening};
use crate::{closed, relay};

/// The router is on the same machine: a SYN that is not answered at once was dropped by a full backlog, and its
/// retransmissions come after 1, 3 and 7 s.
const ROUTER_LIMIT: Duration = Duration::from_secs(10);

/// Shared by all connections.
struct Forwarder {
    log: EventLog,
    router: IpAddr,
    half_close_limit: Duration,
    /// `host:443` and `host:80` entries: on the address of the host, these ports are raw forwards. One socket serves
    /// the whole of 127/8 on these ports, so they are told apart by the address that the client dialled.
    diverted: Mutex<HashMap<SocketAddr, u16>>,
}

/// Runs the forwarder until it is told to stop.
///
/// # Errors
/// When it cannot start: then nothing listens.
pub(crate) async fn run(args: &ForwarderArgs, log: EventLog) -> Result<(), StartError> {
    let mut signals = Signals::new().map_err(|error| StartError::System {
        what: "handle signals",
        error,
    })?;
    refuse_loop(args)?;
    let Some(loaded) = signals.unless_stopped(load_aside(&args.common.allowlist)).await else {
        return Ok(());
    };
    let (allowlist, warnings) = loaded?;
    report_warnings(&log, &warnings);
    let mut policy = Policy::new(allowlist).map_err(LoadError::from)?;

    let descriptors = raise_descriptor_limit();
    // Ports below 1024 are privileged in the pod, so nothing else can want them there.
    let any = |port| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    // A `host:443` entry may be a server that greets first, on the same socket as everything else.
    let tls = listen(any(args.common.tls_port), Opening::Any)?;
    let http = listen(any(args.common.http_port), Opening::Any)?;
    let mut routes = Routes::default();
    let wanted = routes::of_forwarder(&policy.plan, args);
    let prepared = routes.prepare(&wanted)?;

    let limits = Limits::share(descriptors, wanted.len() + 2);
    if relay::probe_splice() {
        relay::limit_pipes(limits.pipes);
    }
    let forwarder = Arc::new(Forwarder {
        log: log.clone(),
        router: args.router,
        half_close_limit: args.common.half_close_limit,
        diverted: Mutex::new(routes::diverted(&policy.plan, args)),
    });
    let limit = Limit::new(limits.connections);
    let serve = |listener: Arc<TcpListener>, router_port: u16, protocol: Protocol| {
        let shared = Arc::clone(&forwarder);
        spawn(accept_loop(
            listener,
            Arc::clone(&limit),
            log.clone(),
            move |client, peer, permit| {
                tokio::spawn(serve(Arc::clone(&shared), client, peer, router_port, protocol, permit));
            },
        ))
    };
    let tasks = [
        serve(tls, args.router_tls_port, Protocol::Tls),
        serve(http, args.router_http_port, Protocol::Http),
    ];
    routes.commit(&wanted, prepared, |route, listener| {
        serve(listener, route.port, Protocol::Tcp)
    });

    if args.verify_closed {
        closed::verify(&policy.allowlist, args.router)
            .await
            .map_err(StartError::from)?;
    }
    report_ready(&log, Mode::Forwarder, policy.allowlist.len(), listeners(args, &wanted));
    while signals.next().await == Signal::Reload {
        let Some(loaded) = signals.unless_stopped(load_again(&args.common.allowlist)).await else {
            break;
        };
        match reload(args, &policy, &forwarder, &mut routes, loaded, serve) {
            Ok((new, event)) => {
                policy = new;
                log.report(&event);
            }
            Err(error) => log.report(&reload_failed(&error)),
        }
    }
    tasks.iter().for_each(AbortHandle::abort);
    drop(routes);
    // The router drains, and its connections end ours.
    let _ = timeout(super::DRAIN, limit.empty(limits.connections)).await;
    log.finish(&Event::Stopped { mode: Mode::Forwarder });
    Ok(())
}

/// A forwarder that is its own router would connect to itself for each connection, until it has no room for more.
fn refuse_loop(args: &ForwarderArgs) -> Result<(), StartError> {
    let router = args.router.to_canonical();
    let own = [args.common.tls_port, args.common.http_port];
    let ports = [args.router_tls_port, args.router_http_port];
    let looped = ports.into_iter().find(|port| own.contains(port));
    match looped {
        Some(port) if router.is_loopback() || router.is_unspecified() => {
            Err(StartError::OwnRouter(SocketAddr::new(args.router, port)))
        }
        _ => Ok(()),
    }
}

fn reload(
    args: &ForwarderArgs,
    old: &Policy,
    forwarder: &Forwarder,
    routes: &mut Routes,
    loaded: Result<(Allowlist, Diagnostics), LoadError>,
    serve: impl Fn(Arc<TcpListener>, u16, Protocol) -> AbortHandle,
) -> Result<(Policy, Event), StartError> {
    let (allowlist, warnings) = loaded?;
    report_warnings(&forwarder.log, &warnings);
    let new = old.successor(allowlist).map_err(LoadError::from)?;
    let wanted = routes::of_forwarder(&new.plan, args);
    let prepared = routes.prepare(&wanted)?;
    routes.commit(&wanted, prepared, |route, listener| {
        serve(listener, route.port, Protocol::Tcp)
    });
    *forwarder.diverted.lock().unwrap_or_else(PoisonError::into_inner) = routes::diverted(&new.plan, args);
    let event = reloaded(old, &new, 0);
    Ok((new, event))
}

/// Serves one connection: to the router, or a reset at once if it does not answer.
async fn serve(
    forwarder: Arc<Forwarder>,
    client: TcpStream,
    peer: SocketAddr,
    router_port: u16,
    protocol: Protocol,
    permit: Permit,
) {
    if !peer.ip().is_loopback() {
        // The sockets of ports 80 and 443 are on every interface of the pod; only the pod itself is served.
        forwarder
            .log
            .report(&Event::refuse(Refusal::ClientNotLocal, protocol, None, router_port));
        return socket::reset_on_close(&client);
    }
    let router_port = forwarder.divert(&client).unwrap_or(router_port);
    let router = SocketAddr::new(forwarder.router, router_port);
    let upstream = match timeout(ROUTER_LIMIT, socket::connect(router, Opening::Any)).await {
        Ok(Ok(upstream)) => upstream,
        Ok(Err(error)) if socket::is_exhausted(&error) => {
            forwarder
                .log
                .report(&Event::refuse(Refusal::Overloaded, protocol, None, router_port));
            return socket::reset_on_close(&client);
        }
        _ => {
            forwarder
                .log
                .report(&Event::refuse(Refusal::RouterUnreachable, protocol, None, router_port));
            return socket::reset_on_close(&client);
        }
    };
    let limit = forwarder.half_close_limit;
    drop(forwarder);
    // A task of its own: it is smaller than this one, which has been through dialling.
    tokio::spawn(async move {
        let mut pair = Pair::new(client, upstream);
        let traffic = Traffic::default();
        if Relay::new(&pair.client, &pair.upstream, &traffic, limit).await == End::Closed {
            pair.in_order();
        }
        drop(permit);
    });
}

impl Forwarder {
    /// The router port of a raw forward that shares its listener with other names.
    fn divert(&self, client: &TcpStream) -> Option<u16> {
        let diverted = self.diverted.lock().unwrap_or_else(PoisonError::into_inner);
        if diverted.is_empty() {
            return None;
        }
        diverted.get(&client.local_addr().ok()?).copied()
    }
}

fn listeners(args: &ForwarderArgs, routes: &[Route]) -> Vec<String> {
    let fixed = [("tls", args.common.tls_port), ("http", args.common.http_port)]
        .map(|(name, port)| format!("{name}://{}:{port}", Ipv4Addr::UNSPECIFIED));
    fixed
        .into_iter()
        .chain(routes.iter().map(|route| format!("tcp://{}", route.listen)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn a_forwarder_is_not_its_own_router() {
        for (line, fine) in [
            ("--router 192.0.2.1", true),
            ("--router 127.0.0.1", false),
            ("--router 0.0.0.0", false),
            ("--router ::ffff:127.0.0.1", false),
            (
                "--router 127.0.0.1 --router-tls-port 8443 --router-http-port 8080",
                true,
            ),
            (
                "--router 127.0.0.1 --router-tls-port 8443 --router-http-port 443",
                false,
            ),
        ] {
            let words = ["as-router", "forward"].into_iter().chain(line.split(' '));
            let Some(Command::Forward(args)) = Cli::try_parse_from(words).unwrap().command else {
                panic!("{line}");
            };
            assert_eq!(refuse_loop(&args).is_ok(), fine, "{line}");
        }
    }
}
