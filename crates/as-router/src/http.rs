//! Port 80: every request of a connection is read, checked, and passed on unaltered.
//!
//! One request at a time: the next head is looked at when the response before it is complete, so no byte of a request
//! that was not checked ever leaves (httpjail #57, dsbx #30176). Raw bytes flow only after the upstream's own 101
//! (RUSTSEC-2026-0033).

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use allowlist::{HostName, Refusal, Service};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use wire::http::{
    BodyLength, BodyReader, HeadReader, Method, RequestHead, parse_request, parse_response, refusal_response,
};

use crate::connections::Connection;
use crate::event::{CloseReason, Protocol};
use crate::listener::Permit;
use crate::relay::{Direction, Pair, Traffic};
use crate::service::{self, HEAD_DEADLINE, Services, Wanted};
use crate::stream::{self, Inbox};

/// Port of the upstream.
const PORT: u16 = 80;

/// From this many bytes of a body on, they are moved without being looked at (by splice if that pays).
const UNSEEN_FROM: u64 = 64 * 1024;

/// Serves one accepted connection.
pub(crate) async fn serve(services: Arc<Services>, client: TcpStream, permit: Permit) {
    let mut inbox = Inbox::default();
    let (request, length) = match read_request(&client, &mut inbox).await {
        Ok(Some(read)) => read,
        Ok(None) => return,
        Err(refusal) => {
            services.refused(refusal, Protocol::Http, None, PORT);
            return stream::refuse(&client, &refusal_response(refusal, None, false)).await;
        }
    };
    let wanted = Wanted {
        protocol: Protocol::Http,
        name: request.host.clone(),
        port: PORT,
        ech: false,
    };
    match services.open(&wanted).await {
        Ok((upstream, target)) => {
            let connections = Arc::clone(&services.connections);
            let _detached = connections.run(target, |connection| async move {
                let pair = Pair::new(client, upstream);
                let mut exchange = Exchange {
                    services,
                    pair,
                    inbox,
                    outbox: Inbox::default(),
                    connection,
                    reused: false,
                };
                exchange.run(request, length).await;
                drop(permit);
            });
        }
        Err(refusal) => {
            let answer = refusal_response(refusal, Some(&request.host), request.method == Method::Head);
            stream::refuse(&client, &answer).await;
        }
    }
}

/// The requests and responses of one connection.
struct Exchange {
    services: Arc<Services>,
    pair: Pair,
    /// From the client.
    inbox: Inbox,
    /// From the upstream.
    outbox: Inbox,
    connection: Connection,
    /// A response has come already: a connection that fails now may just have been closed by an idle upstream, and
    /// the client's own retry is better than a 502.
    reused: bool,
}

/// What follows a response.
enum Next {
    /// Another request may come.
    Request,
    /// The connection is over, in order.
    Close,
    /// 101: raw bytes from here on.
    Raw,
}

/// Why an exchange ends out of order.
enum Fault {
    /// A read or write failed, or a message was cut short: the other side must not take it for complete.
    Broken,
    /// The client ended within the body of its request: no answer is worth waiting for.
    Cut,
    /// The client has finished, and nothing moved for as long as `--half-close-limit` allows.
    Idle,
    /// One side broke the rules. Tell the client if nothing of a response has reached it yet.
    Refused(Refusal),
    /// The upstream closed without a word.
    Silent,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A write never says so: the source ended before the body did.
            io::ErrorKind::UnexpectedEof => Self::Cut,
            _ => Self::Broken,
        }
    }
}

impl Exchange {
    async fn run(&mut self, mut request: RequestHead, mut length: usize) {
        loop {
            match self.one(&request, length).await {
                Ok(Next::Request) => self.reused = true,
                Ok(Next::Close) => return self.close(CloseReason::Closed).await,
                Ok(Next::Raw) => return self.raw().await,
                // Dropped as it is, the pair resets both sides.
                Err(Fault::Broken | Fault::Cut | Fault::Silent) => return,
                Err(Fault::Idle) => return self.connection.ended(CloseReason::Idle),
                Err(Fault::Refused(refusal)) => return self.refuse(refusal, &request.host, request.method).await,
            }
            match self.next_request(&request.host).await {
                Ok(Some(next)) => (request, length) = next,
                Ok(None) => return self.close(CloseReason::Closed).await,
                Err((refusal, host)) => {
                    return self
                        .refuse(refusal, host.as_ref().unwrap_or(&request.host), Method::Other)
                        .await;
                }
            }
        }
    }

    /// One request and its response. They overlap: a server may answer before it has the whole body, and a client that
    /// sent `Expect: 100-continue` waits for the interim response first.
    async fn one(&mut self, request: &RequestHead, length: usize) -> Result<Next, Fault> {
        let traffic = &self.connection.traffic;
        let mut body = BodyReader::new(request.body);
        // What came with the head goes with it, in one segment.
        let rest = self.inbox.bytes().get(length..).unwrap_or_default();
        let first = length + body.advance(rest).map_err(Fault::Refused)?;
        let bytes = self.inbox.bytes().get(..first).unwrap_or_default();
        if stream::write_all(&self.pair.upstream, bytes).await.is_err() {
            return Err(if self.reused {
                Fault::Broken
            } else {
                Fault::Refused(Refusal::UpstreamUnreachable)
            });
        }
        traffic.sent.fetch_add(first as u64, Ordering::Relaxed);
        self.inbox.consume(first);

        let Self {
            pair: Pair { client, upstream, .. },
            inbox,
            outbox,
            ..
        } = self;
        let answer_begun = AtomicBool::new(false);
        let send = send_body(client, upstream, inbox, &mut body, &traffic.sent);
        let answer = send_response(upstream, client, outbox, request, &answer_begun, &traffic.received);
        let exchange = async {
            let (mut send, mut answer) = (pin!(send), pin!(answer));
            tokio::select! {
                biased;
                sent = &mut send => match sent {
                    Ok(()) => answer.await,
                    // The upstream may have stopped reading because it has already said why (413, 403).
                    Err(Fault::Broken) => match answer.await {
                        Ok(Next::Request | Next::Close) => Ok(Next::Close),
                        _ => Err(Fault::Broken),
                    },
                    Err(fault) => Err(fault),
                },
                // Answered before the body was complete: what follows of it is of no use to anyone.
                next = &mut answer => match next {
                    Ok(Next::Request) => Ok(Next::Close),
                    next => next,
                },
            }
        };
        let next = tokio::select! {
            biased;
            next = exchange => next,
            fault = abandoned(client, traffic, self.services.half_close_limit) => Err(fault),
        };
        match next {
            Err(Fault::Idle) => Err(Fault::Idle),
            // Once bytes of a response are out, only a reset tells the client that it is not complete.
            Err(_) if answer_begun.load(Ordering::Relaxed) => Err(Fault::Broken),
            Err(Fault::Silent) if !self.reused => Err(Fault::Refused(Refusal::UpstreamUnreachable)),
            next => next,
        }
    }

    /// Waits for the next request, or for either side to close.
    async fn next_request(
        &mut self,
        host: &HostName,
    ) -> Result<Option<(RequestHead, usize)>, (Refusal, Option<HostName>)> {
        if self.inbox.is_empty() {
            // Both are read, not only waited for: after a read that took exactly what there was, tokio still has the
            // socket for readable, and waiting for the one that has nothing would keep the other unheard.
            tokio::select! {
                biased;
                // The upstream closes an idle connection, or speaks out of turn: no request may go there any more.
                read = self.outbox.fill(&self.pair.upstream) => match read {
                    Ok(0) | Err(_) => return Ok(None),
                    Ok(_) => return Err((Refusal::MalformedResponse, None)),
                },
                read = self.inbox.fill(&self.pair.client) => match read {
                    Ok(0) | Err(_) => return Ok(None),
                    Ok(_) => {}
                },
            }
        }
        let read = read_request(&self.pair.client, &mut self.inbox)
            .await
            .map_err(|refusal| (refusal, None))?;
        let Some((request, length)) = read else { return Ok(None) };
        if request.host != *host {
            return Err((Refusal::HostChanged, Some(request.host)));
        }
        // The list may have changed since the last request.
        match self.services.policy.current().allowlist.decide(host, Service::Web) {
            Ok(_) => Ok(Some((request, length))),
            Err(refusal) => Err((refusal, None)),
        }
    }

    /// After a 101: both ways to the end, beginning with what has been read already.
    async fn raw(&mut self) {
        let Self {
            pair: Pair { client, upstream, .. },
            inbox,
            outbox,
            connection,
            ..
        } = self;
        let early = async {
            stream::write_all(upstream, inbox.bytes()).await?;
            stream::write_all(client, outbox.bytes()).await
        };
        if early.await.is_err() {
            return;
        }
        connection
            .traffic
            .sent
            .fetch_add(inbox.bytes().len() as u64, Ordering::Relaxed);
        connection
            .traffic
            .received
            .fetch_add(outbox.bytes().len() as u64, Ordering::Relaxed);
        (*inbox, *outbox) = (Inbox::default(), Inbox::default());
        service::relay(&mut self.pair, connection, self.services.half_close_limit).await;
    }

    /// Tells the client why, in the middle of a connection, and ends it.
    async fn refuse(&mut self, refusal: Refusal, host: &HostName, method: Method) {
        self.services.refused(refusal, Protocol::Http, Some(host.clone()), PORT);
        let answer = refusal_response(refusal, Some(host), method == Method::Head);
        self.connection.ended(CloseReason::Refused);
        self.pair.in_order();
        stream::refuse(&self.pair.client, &answer).await;
    }

    /// Closes so that the client can read what it was sent last.
    async fn close(&mut self, reason: CloseReason) {
        self.connection.ended(reason);
        self.pair.in_order();
        stream::refuse(&self.pair.client, &[]).await;
    }
}

/// Reads a request head; `None` when the client closes, or the deadline passes, before its first byte. The head stays in
/// the inbox.
async fn read_request(client: &TcpStream, inbox: &mut Inbox) -> Result<Option<(RequestHead, usize)>, Refusal> {
    let mut reader = HeadReader::new();
    // Between requests a connection may be idle for as long as it likes; here it has begun, or is new.
    let deadline = Instant::now() + HEAD_DEADLINE;
    loop {
        if let Some(length) = reader.advance(inbox.bytes())? {
            let head = inbox.bytes().get(..length).unwrap_or_default();
            return parse_request(head).map(|request| Some((request, length)));
        }
        match timeout_at(deadline, inbox.fill(client)).await {
            // A browser's spare connection, or a probe: a 408 would be taken for the answer to a later request.
            Ok(Ok(0) | Err(_)) | Err(_) if inbox.is_empty() => return Ok(None),
            Ok(Ok(0) | Err(_)) => return Err(Refusal::HeadIncomplete),
            Ok(Ok(_)) => {}
            Err(_) => return Err(Refusal::HeadTimeout),
        }
    }
}

/// Ends when the client is gone: without it, a client that gave up on an upstream that never answers would hold two
/// descriptors for ever. One that has only finished sending may well wait for its answer, as in every relay.
async fn abandoned(client: &TcpStream, traffic: &Traffic, limit: Duration) -> Fault {
    // The end of the stream is part of this interest, and the data before it, such as a pipelined request, is not.
    match client.ready(Interest::PRIORITY | Interest::ERROR).await {
        Ok(ready) if !ready.is_error() => {}
        _ => return Fault::Broken,
    }
    loop {
        let seen = traffic.total();
        if timeout(limit, client.ready(Interest::ERROR)).await.is_ok() {
            return Fault::Broken;
        }
        if traffic.total() == seen {
            return Fault::Idle;
        }
    }
}

/// Passes on exactly the body of a request.
async fn send_body(
    client: &TcpStream,
    upstream: &TcpStream,
    inbox: &mut Inbox,
    body: &mut BodyReader,
    sent: &AtomicU64,
) -> Result<(), Fault> {
    while !body.is_done() {
        if !move_unseen(client, upstream, inbox, body, sent).await? {
            if inbox.is_empty() && !matches!(inbox.fill(client).await, Ok(1..)) {
                return Err(Fault::Cut);
            }
            pass(upstream, inbox, body, sent).await?;
        }
    }
    Ok(())
}

/// Passes on the response, interim ones first. Sets `begun` before its first byte reaches the client.
async fn send_response(
    upstream: &TcpStream,
    client: &TcpStream,
    outbox: &mut Inbox,
    request: &RequestHead,
    begun: &AtomicBool,
    received: &AtomicU64,
) -> Result<Next, Fault> {
    let (response, length) = loop {
        let length = read_response_head(upstream, outbox).await?;
        let head = outbox.bytes().get(..length).unwrap_or_default();
        let response = parse_response(head, request.method).map_err(Fault::Refused)?;
        if !response.is_interim() {
            break (response, length);
        }
        begun.store(true, Ordering::Relaxed);
        stream::write_all(client, head).await?;
        received.fetch_add(length as u64, Ordering::Relaxed);
        outbox.consume(length);
    };
    let switched = response.status == 101;
    if switched && !request.upgrade {
        return Err(Fault::Refused(Refusal::MalformedResponse));
    }
    let mut body = BodyReader::for_response(response.body);
    let rest = outbox.bytes().get(length..).unwrap_or_default();
    let first = if switched {
        length
    } else {
        length + body.advance(rest).map_err(Fault::Refused)?
    };
    begun.store(true, Ordering::Relaxed);
    stream::write_all(client, outbox.bytes().get(..first).unwrap_or_default()).await?;
    received.fetch_add(first as u64, Ordering::Relaxed);
    outbox.consume(first);
    if switched {
        return Ok(Next::Raw);
    }
    while !body.is_done() {
        if move_unseen(upstream, client, outbox, &mut body, received).await? {
            if response.body == BodyLength::UntilClose {
                return Ok(Next::Close);
            }
        } else if outbox.is_empty() && outbox.fill(upstream).await? == 0 {
            return if body.may_end() {
                Ok(Next::Close)
            } else {
                Err(Fault::Broken)
            };
        } else {
            pass(client, outbox, &mut body, received).await?;
        }
    }
    // Bytes after the response belong to no request.
    if request.close || response.close || !outbox.is_empty() {
        Ok(Next::Close)
    } else {
        Ok(Next::Request)
    }
}

/// Reads until the head of a response is complete. Without a deadline: a model may think for minutes.
async fn read_response_head(upstream: &TcpStream, outbox: &mut Inbox) -> Result<usize, Fault> {
    let mut reader = HeadReader::for_response();
    loop {
        if let Some(length) = reader.advance(outbox.bytes()).map_err(Fault::Refused)? {
            return Ok(length);
        }
        match outbox.fill(upstream).await {
            Ok(0) | Err(_) if outbox.is_empty() => return Err(Fault::Silent),
            Ok(0) | Err(_) => return Err(Fault::Refused(Refusal::MalformedResponse)),
            Ok(_) => {}
        }
    }
}

/// Passes on what the inbox holds of a body.
async fn pass(to: &TcpStream, inbox: &mut Inbox, body: &mut BodyReader, count: &AtomicU64) -> Result<(), Fault> {
    let ours = body.advance(inbox.bytes()).map_err(Fault::Refused)?;
    stream::write_all(to, inbox.bytes().get(..ours).unwrap_or_default()).await?;
    count.fetch_add(ours as u64, Ordering::Relaxed);
    inbox.consume(ours);
    Ok(())
}

/// Moves a long stretch of a body whose bytes need not be looked at. `false` if there is none at this point.
async fn move_unseen(
    from: &TcpStream,
    to: &TcpStream,
    inbox: &Inbox,
    body: &mut BodyReader,
    count: &AtomicU64,
) -> Result<bool, Fault> {
    let stretch = body.remaining();
    if stretch < UNSEEN_FROM || !inbox.is_empty() {
        return Ok(false);
    }
    // To the end of the stream if the body ends there (`u64::MAX`).
    let mut direction = Direction::exactly(stretch);
    poll_fn(|cx| direction.poll(cx, from, to, count)).await?;
    body.skip(stretch).map_err(Fault::Refused)?;
    Ok(true)
}
