//! What every connection of a router needs.

use std::sync::Arc;
use std::time::Duration;

use allowlist::{HostName, Refusal, Service};
use tokio::net::TcpStream;

use crate::connections::{Connection, Connections, Target};
use crate::event::{Event, EventLog, Protocol};
use crate::listener::Permit;
use crate::policy::PolicyStore;
use crate::relay::{End, Pair, Relay};
use crate::socket::Opening;
use crate::upstream::{self, Resolver};

/// One absolute deadline for a ClientHello or a request head, however slowly its bytes come (slowloris).
pub(crate) const HEAD_DEADLINE: Duration = Duration::from_secs(10);

/// Shared by all connections of the process.
pub(crate) struct Services {
    pub(crate) policy: PolicyStore,
    pub(crate) resolver: Resolver,
    pub(crate) connections: Arc<Connections>,
    pub(crate) log: EventLog,
    pub(crate) half_close_limit: Duration,
}

/// A request for a name, as read from the wire or known from the listener.
pub(crate) struct Wanted {
    pub(crate) protocol: Protocol,
    pub(crate) name: HostName,
    /// Port of the upstream.
    pub(crate) port: u16,
    pub(crate) ech: bool,
}

impl Wanted {
    const fn service(&self) -> Service {
        match self.protocol {
            Protocol::Tcp => Service::Port(self.port),
            Protocol::Dns => Service::Name,
            Protocol::Tls | Protocol::Http => Service::Web,
        }
    }

    const fn opening(&self) -> Opening {
        match self.protocol {
            Protocol::Tls | Protocol::Http => Opening::Client,
            Protocol::Tcp | Protocol::Dns => Opening::Any,
        }
    }
}

impl Services {
    /// The one way to an upstream: decide, resolve and vet, dial.
    ///
    /// # Errors
    /// The refusal, already reported.
    pub(crate) async fn open(&self, wanted: &Wanted) -> Result<(TcpStream, Target), Refusal> {
        let service = wanted.service();
        let decided = self
            .policy
            .current()
            .allowlist
            .decide(&wanted.name, service)
            .map(|allowed| allowed.entry().line());
        let opened = match decided {
            Ok(entry) => upstream::connect(&self.resolver, &wanted.name, wanted.port, wanted.opening())
                .await
                .map(|(stream, address)| (stream, address, entry)),
            Err(refusal) => Err(refusal),
        };
        let (stream, upstream, entry) = opened.inspect_err(|&refusal| {
            self.refused(refusal, wanted.protocol, Some(wanted.name.clone()), wanted.port);
        })?;
        // A reload may have removed the entry while the connection was being made.
        if self.policy.current().allowlist.decide(&wanted.name, service).is_err() {
            self.refused(
                Refusal::Revoked,
                wanted.protocol,
                Some(wanted.name.clone()),
                wanted.port,
            );
            return Err(Refusal::Revoked);
        }
        let target = Target {
            protocol: wanted.protocol,
            service,
            name: wanted.name.clone(),
            port: wanted.port,
            upstream,
            entry,
            ech: wanted.ech,
        };
        Ok((stream, target))
    }

    /// Relays an opened connection in a task of its own, which holds nothing but what the relay needs.
    pub(crate) fn relay(&self, client: TcpStream, upstream: TcpStream, target: Target, head: u64, permit: Permit) {
        let limit = self.half_close_limit;
        let _detached = self.connections.run(target, move |mut connection| async move {
            connection
                .traffic
                .sent
                .store(head, std::sync::atomic::Ordering::Relaxed);
            relay(&mut Pair::new(client, upstream), &mut connection, limit).await;
            drop(permit);
        });
    }

    pub(crate) fn refused(&self, refusal: Refusal, protocol: Protocol, name: Option<HostName>, port: u16) {
        self.log.report(&Event::refuse(refusal, protocol, name, port));
    }
}

/// Relays until the end and notes how it ended.
pub(crate) async fn relay(pair: &mut Pair, connection: &mut Connection, limit: Duration) {
    let end = Relay::new(&pair.client, &pair.upstream, &connection.traffic, limit).await;
    if end == End::Closed {
        pair.in_order();
    }
    connection.ended(end.into());
}
