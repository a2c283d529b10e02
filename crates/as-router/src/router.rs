//! Router mode: opens the listeners, serves them, and obeys signals.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use allowlist::{AddressPolicy, Diagnostics, Forward};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::cli::RouterArgs;
use crate::connections::Connections;
use crate::dns::{self, Answer};
use crate::event::{Event, EventLog, Mode};
use crate::limits::{Limits, raise_descriptor_limit};
use crate::listener::{ListenError, accept_loop, listen};
use crate::policy::{LoadError, Policy, PolicyStore, load};
use crate::routes::{Route, Routes};
use crate::service::Services;
use crate::signals::{Signal, Signals};
use crate::upstream::Resolver;
use crate::{forward, http, relay, tls};

/// Why router or forwarder did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Conflict(#[from] PortConflict),
    #[error("cannot {what}: {error}")]
    System { what: &'static str, error: std::io::Error },
}

/// With one address for all names, one port can only stand for one host.
#[derive(Debug, thiserror::Error)]
#[error(
    "with --answer {address}, port {port} can only lead to one host, but {first} and {second} need it; remove one, or \
     use a forwarder (as-router forward), where every name has an address of its own"
)]
pub(crate) struct PortConflict {
    address: IpAddr,
    port: u16,
    first: String,
    second: String,
}

/// Longest wait for connections to end by themselves after SIGTERM.
const DRAIN: Duration = Duration::from_secs(2);

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
    let (allowlist, warnings) = load(&args.common.allowlist)?;
    report_warnings(&log, &warnings);
    let policy = Arc::new(Policy::new(allowlist).map_err(LoadError::from)?);

    let descriptors = raise_descriptor_limit();
    let at = |port| SocketAddr::new(args.listen, port);
    let dns_udp = dns::listen_udp(at(args.dns_port))?;
    let dns_tcp = listen(at(args.dns_port))?;
    let tls = listen(at(args.common.tls_port))?;
    let http = listen(at(args.common.http_port))?;
    let mut routes = Routes::default();
    let wanted = wanted(&policy, args)?;
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
    let limit = Arc::new(Semaphore::new(limits.connections));
    let dns_limit = Arc::new(Semaphore::new(limits.dns_tcp));

    let answer = args.answer;
    dns::serve_udp(dns_udp, Arc::clone(&services), answer).map_err(|error| StartError::System {
        what: "start a thread",
        error,
    })?;
    let mut tasks = Vec::new();
    let shared = Arc::clone(&services);
    tasks.push(spawn(accept_loop(
        dns_tcp,
        dns_limit,
        log.clone(),
        move |client, _, permit| {
            tokio::spawn(dns::serve_tcp(Arc::clone(&shared), client, answer, permit));
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
        match reload(args, &services, &mut routes, serve_route) {
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
    serve: impl Fn(&Route, tokio::net::TcpListener) -> AbortHandle,
) -> Result<Event, StartError> {
    let (allowlist, warnings) = load(&args.common.allowlist)?;
    report_warnings(&services.log, &warnings);
    let old = services.policy.current();
    let new = Arc::new(old.successor(allowlist).map_err(LoadError::from)?);
    let wanted = wanted(&new, args)?;
    let prepared = routes.prepare(&wanted)?;
    // From here on nothing fails.
    services.policy.replace(Arc::clone(&new));
    routes.commit(&wanted, prepared, serve);
    services.resolver.forget();
    let cut = services.connections.cut_revoked(&new.allowlist);
    Ok(reloaded(&old, &new, cut))
}

pub(crate) fn reloaded(old: &Policy, new: &Policy, cut: usize) -> Event {
    let texts = |policy: &Policy| {
        policy
            .allowlist
            .entries()
            .map(ToString::to_string)
            .collect::<std::collections::HashSet<_>>()
    };
    let (before, after) = (texts(old), texts(new));
    Event::Reloaded {
        entries: after.len(),
        added: after.difference(&before).count(),
        removed: before.difference(&after).count(),
        cut,
    }
}

pub(crate) fn reload_failed(error: &StartError) -> Event {
    let mut message = format!("the old allowlist stays in force: {error}");
    if let StartError::Load(LoadError::Faults(faults)) = error {
        message.push('\n');
        message.push_str(&faults.render(false));
    }
    Event::Fault {
        code: "reload-failed",
        message,
    }
}

pub(crate) fn report_warnings(log: &EventLog, warnings: &Diagnostics) {
    for warning in warnings.iter() {
        let message = format!("{}:{}: {}", warnings.file(), warning.line, warning.message);
        log.report(&Event::Fault {
            code: warning.code.as_str(),
            message,
        });
    }
}

pub(crate) fn report_ready(log: &EventLog, mode: Mode, entries: usize, listeners: Vec<String>) {
    let ready = Event::Ready {
        mode,
        entries,
        listeners,
        version: env!("CARGO_PKG_VERSION"),
    };
    // Whoever started the process waits for this line.
    log.report_and_flush(&ready);
}

pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    tokio::spawn(task).abort_handle()
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

/// The listeners of the `host:port` entries. With a forwarder each has a router port of its own; without one, clients
/// come to the real port.
fn wanted(policy: &Policy, args: &RouterArgs) -> Result<Vec<Route>, PortConflict> {
    let forwards = policy.plan.forwards();
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
    let mut taken: std::collections::HashMap<u16, String> = [
        (args.dns_port, "DNS".to_owned()),
        (args.common.tls_port, "TLS".to_owned()),
        (args.common.http_port, "HTTP".to_owned()),
    ]
    .into();
    let mut wanted = Vec::new();
    for forward in forwards {
        let second = format!("{}:{} (line {})", forward.name, forward.port, forward.line);
        if let Some(first) = taken.insert(forward.port, second.clone()) {
            return Err(PortConflict {
                address: address.into(),
                port: forward.port,
                first,
                second,
            });
        }
        wanted.push(route(forward, forward.port));
    }
    Ok(wanted)
}
