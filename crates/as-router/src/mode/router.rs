//! Router mode: opens the listeners, serves them, and obeys signals.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use allowlist::{AddressPolicy, Allowlist, Diagnostics};
use tokio::task::AbortHandle;

use super::{DRAIN, StartError, reload_failed, reloaded, report_ready, report_warnings, spawn};
use crate::cli::RouterArgs;
use crate::connections::Connections;
use crate::dns;
use crate::event::{Event, EventLog, Mode};
use crate::limits::{Limits, raise_descriptor_limit};
use crate::listener::{Limit, accept_loop, listen};
use crate::policy::{LoadError, Policy, PolicyStore, load_again, load_aside};
use crate::routes::{self, Route, Routes};
use crate::service::Services;
use crate::signals::{Signal, Signals};
use crate::socket::Opening;
use crate::upstream::Resolver;
use crate::{forward, http, relay, tls};

/// Between two looks whether the last connection has ended.
const DRAIN_TICK: Duration = Duration::from_millis(20);

/// Runs the router until it is told to stop.
///
/// # Errors
/// When it cannot start: then nothing listens.
pub(crate) async fn run(args: &RouterArgs, log: EventLog) -> Result<(), StartError> {
    let mut signals = Signals::new().map_err(|error| StartError::System {
        what: "handle signals",
        error,
    })?;
    let Some(loaded) = signals.unless_stopped(load_aside(&args.common.allowlist)).await else {
        return Ok(());
    };
    let (allowlist, warnings) = loaded?;
    report_warnings(&log, &warnings);
    let policy = Arc::new(Policy::new(allowlist).map_err(LoadError::from)?);

    let descriptors = raise_descriptor_limit();
    let at = |port| SocketAddr::new(args.listen, port);
    let dns_udp = dns::listen_udp(at(args.dns_port))?;
    let dns_tcp = listen(at(args.dns_port), Opening::Any)?;
    let tls = listen(at(args.common.tls_port), Opening::Client)?;
    let http = listen(at(args.common.http_port), Opening::Client)?;
    let mut routes = Routes::default();
    let wanted = routes::of_router(&policy.plan, args)?;
    let prepared = routes.prepare(&wanted)?;

    let limits = Limits::share(descriptors, wanted.len() + 4);
    if relay::probe_splice() {
        relay::limit_pipes(limits.pipes);
    } else {
        let message = "this kernel does not splice; large transfers are copied, which costs more CPU".to_owned();
        log.report(&Event::Fault {
            code: "no-splice",
            message,
        });
    }
    let services = Arc::new(Services {
        policy: PolicyStore::new(Arc::clone(&policy)),
        resolver: Resolver::new(AddressPolicy::new(args.deny_private, args.allow_address.clone())),
        connections: Connections::new(log.clone()),
        log: log.clone(),
        half_close_limit: args.common.half_close_limit,
    });
    let limit = Limit::new(limits.connections);
    let dns_limit = Limit::new(limits.dns_tcp);

    let answer = args.answer;
    dns::serve_udp(dns_udp, Arc::clone(&services), answer).map_err(|error| StartError::System {
        what: "start a thread",
        error,
    })?;
    let mut tasks = Vec::new();
    let (shared, crowd) = (Arc::clone(&services), Arc::clone(&dns_limit));
    tasks.push(spawn(accept_loop(
        dns_tcp,
        dns_limit,
        log.clone(),
        move |client, _, permit| {
            tokio::spawn(dns::serve_tcp(
                Arc::clone(&shared),
                client,
                answer,
                Arc::clone(&crowd),
                permit,
            ));
        },
    )));
    let shared = Arc::clone(&services);
    tasks.push(spawn(accept_loop(
        tls,
        Arc::clone(&limit),
        log.clone(),
        move |client, _, permit| {
            tokio::spawn(tls::serve(Arc::clone(&shared), client, permit));
        },
    )));
    let shared = Arc::clone(&services);
    tasks.push(spawn(accept_loop(
        http,
        Arc::clone(&limit),
        log.clone(),
        move |client, _, permit| {
            tokio::spawn(http::serve(Arc::clone(&shared), client, permit));
        },
    )));
    let serve_route = |route: &Route, listener| {
        let (shared, name, port) = (Arc::clone(&services), route.name.clone(), route.port);
        spawn(accept_loop(
            listener,
            Arc::clone(&limit),
            log.clone(),
            move |client, _, permit| {
                tokio::spawn(forward::serve(Arc::clone(&shared), client, name.clone(), port, permit));
            },
        ))
    };
    routes.commit(&wanted, prepared, serve_route);

    report_ready(&log, Mode::Router, policy.allowlist.len(), listeners(args, &wanted));
    while signals.next().await == Signal::Reload {
        let Some(loaded) = signals.unless_stopped(load_again(&args.common.allowlist)).await else {
            break;
        };
        match reload(args, &services, &mut routes, loaded, serve_route) {
            Ok(event) => log.report(&event),
            Err(error) => log.report(&reload_failed(&error)),
        }
    }
    tasks.iter().for_each(AbortHandle::abort);
    drop(routes);
    drain(&services.connections).await;
    log.finish(&Event::Stopped { mode: Mode::Router });
    Ok(())
}

/// Waits for the connections to end, then cuts what is left.
pub(crate) async fn drain(connections: &Connections) {
    let end = tokio::time::Instant::now() + DRAIN;
    while !connections.is_empty() && tokio::time::Instant::now() < end {
        tokio::time::sleep(DRAIN_TICK).await;
    }
    if connections.cut_all() > 0 {
        // The cut tasks run once more, to reset their sockets and report.
        tokio::time::sleep(DRAIN_TICK).await;
    }
}

fn reload(
    args: &RouterArgs,
    services: &Services,
    routes: &mut Routes,
    loaded: Result<(Allowlist, Diagnostics), LoadError>,
    serve: impl Fn(&Route, Arc<tokio::net::TcpListener>) -> AbortHandle,
) -> Result<Event, StartError> {
    let (allowlist, warnings) = loaded?;
    report_warnings(&services.log, &warnings);
    let old = services.policy.current();
    let new = Arc::new(old.successor(allowlist).map_err(LoadError::from)?);
    let wanted = routes::of_router(&new.plan, args)?;
    let prepared = routes.prepare(&wanted)?;
    // From here on nothing fails.
    services.policy.replace(Arc::clone(&new));
    routes.commit(&wanted, prepared, serve);
    services.resolver.forget();
    let cut = services.connections.cut_revoked(&new.allowlist);
    Ok(reloaded(&old, &new, cut))
}

fn listeners(args: &RouterArgs, routes: &[Route]) -> Vec<String> {
    let services = [
        ("dns", args.dns_port),
        ("tls", args.common.tls_port),
        ("http", args.common.http_port),
    ];
    let fixed = services.map(|(name, port)| format!("{name}://{}", SocketAddr::new(args.listen, port)));
    fixed
        .into_iter()
        .chain(routes.iter().map(|route| format!("tcp://{}", route.listen)))
        .collect()
}
