//! The connections that were let through: so that each is reported once at its start and once at its end, and so that a
//! reload can cut those whose entry is gone.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use allowlist::{Allowlist, HostName, Service};
use tokio::task::{AbortHandle, JoinHandle};

use crate::event::{CloseReason, Event, EventLog, Protocol};
use crate::relay::{End, Traffic};

/// What was allowed.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) protocol: Protocol,
    pub(crate) service: Service,
    pub(crate) name: HostName,
    pub(crate) port: u16,
    pub(crate) upstream: SocketAddr,
    /// Line of the allowlist.
    pub(crate) entry: u32,
    pub(crate) ech: bool,
}

/// All connections that are open.
pub(crate) struct Connections {
    log: EventLog,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    by_id: HashMap<u64, Entry>,
}

struct Entry {
    name: HostName,
    service: Service,
    /// Set once the connection's task runs.
    task: Option<AbortHandle>,
    cut: Option<CloseReason>,
}

impl Connections {
    pub(crate) fn new(log: EventLog) -> Arc<Self> {
        Arc::new(Self {
            log,
            open: Mutex::default(),
        })
    }

    /// Runs `relay` as the task of a connection to `target`. The task can be cut; however it ends, its `close` event
    /// is reported.
    pub(crate) fn run<F>(self: &Arc<Self>, target: Target, relay: impl FnOnce(Connection) -> F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.log.report(&Event::Allow {
            protocol: target.protocol,
            name: target.name.clone(),
            port: target.port,
            upstream: target.upstream,
            entry: target.entry,
            ech: target.ech,
        });
        let id = {
            let mut open = self.lock();
            let id = open.next;
            open.next += 1;
            let entry = Entry {
                name: target.name.clone(),
                service: target.service,
                task: None,
                cut: None,
            };
            open.by_id.insert(id, entry);
            id
        };
        let connection = Connection {
            connections: Arc::clone(self),
            id,
            target,
            traffic: Traffic::default(),
            since: Instant::now(),
            reason: CloseReason::Reset,
        };
        let task = tokio::spawn(relay(connection));
        if let Some(entry) = self.lock().by_id.get_mut(&id) {
            entry.task = Some(task.abort_handle());
        }
        task
    }

    /// Cuts every connection that `allowlist` does not allow. Returns how many.
    pub(crate) fn cut_revoked(&self, allowlist: &Allowlist) -> usize {
        self.cut(CloseReason::Revoked, |entry| {
            allowlist.decide(&entry.name, entry.service).is_err()
        })
    }

    /// Cuts all.
    pub(crate) fn cut_all(&self) -> usize {
        self.cut(CloseReason::Stopped, |_| true)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_id.is_empty()
    }

    fn cut(&self, reason: CloseReason, which: impl Fn(&Entry) -> bool) -> usize {
        let mut open = self.lock();
        let chosen = open
            .by_id
            .values_mut()
            .filter(|entry| entry.cut.is_none() && which(entry));
        chosen
            .map(|entry| {
                entry.cut = Some(reason);
                // Without a task yet it is about to start on this very thread, and is cut at its first wait.
                if let Some(task) = &entry.task {
                    task.abort();
                }
            })
            .count()
    }

    /// A poisoned lock cannot be: a panic aborts the process.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open connection. Dropping it reports its end.
pub(crate) struct Connection {
    connections: Arc<Connections>,
    id: u64,
    pub(crate) target: Target,
    pub(crate) traffic: Traffic,
    since: Instant,
    reason: CloseReason,
}

impl Connection {
    /// Notes how the connection ended.
    pub(crate) fn ended(&mut self, reason: CloseReason) {
        self.reason = reason;
    }
}

impl From<End> for CloseReason {
    fn from(end: End) -> Self {
        match end {
            End::Closed => Self::Closed,
            End::Reset => Self::Reset,
            End::Idle => Self::Idle,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        use std::sync::atomic::Ordering::Relaxed;
        let cut = self
            .connections
            .lock()
            .by_id
            .remove(&self.id)
            .and_then(|entry| entry.cut);
        let millis = self.since.elapsed().as_millis();
        self.connections.log.report(&Event::Close {
            protocol: self.target.protocol,
            name: self.target.name.clone(),
            port: self.target.port,
            upstream: self.target.upstream,
            entry: self.target.entry,
            bytes_out: self.traffic.sent.load(Relaxed),
            bytes_in: self.traffic.received.load(Relaxed),
            duration_ms: u64::try_from(millis).unwrap_or(u64::MAX),
            reason: cut.unwrap_or(self.reason),
        });
    }
}
