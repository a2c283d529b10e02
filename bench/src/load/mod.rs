//! Load generators. Each runs for a time or a count, whichever ends first, and prints one JSON line.

mod bulk;
mod connect;
mod dns;
mod echo;
mod http;
mod idle;
mod tally;

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use tally::Tally;

/// What one generator is to do.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Kind of load
    #[arg(value_enum)]
    pub(crate) mode: Mode,
    /// Address of the daemon
    #[arg(long)]
    pub(crate) to: SocketAddr,
    /// Name to ask for
    #[arg(long, default_value = "")]
    pub(crate) name: String,
    /// Connections at the same time (DNS over UDP: queries at the same time)
    #[arg(long, default_value_t = 1)]
    pub(crate) connections: usize,
    /// Operations a second over all connections; 0: as fast as answers come
    #[arg(long, default_value_t = 0)]
    pub(crate) rate: u64,
    /// Longest time in seconds
    #[arg(long, default_value_t = 2.0)]
    pub(crate) seconds: f64,
    /// Most operations
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) max: u64,
}

/// Kinds of load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Mode {
    /// Connect, send a hello, read 100 bytes and the end
    Connect,
    /// One connect, repeated until it succeeds; prints when that was
    Ready,
    /// 64 bytes there and back on kept connections
    Echo,
    /// Receive
    Down,
    /// Send, then wait for the other side's end
    Up,
    /// GET requests on kept connections
    Http,
    /// Open connections, say so, keep them until stdin ends
    Idle,
    /// A queries over UDP
    DnsUdp,
    /// One A query a connection
    DnsTcp,
    /// 50 A queries a connection
    DnsTcpKept,
}

/// What a generator has done.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct Report {
    /// Operations that ended as they should
    pub(crate) operations: u64,
    /// Operations that did not
    pub(crate) errors: u64,
    /// Payload bytes of bulk transfers
    pub(crate) bytes: u64,
    /// Time taken
    pub(crate) seconds: f64,
    /// Half of the operations took no longer than this many microseconds
    pub(crate) p50: u32,
    /// 99 of 100 operations took no longer than this many microseconds
    pub(crate) p99: u32,
    /// First error
    pub(crate) error: Option<String>,
}

/// An operation that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the load and prints its report.
pub(crate) fn run(options: &Options) -> Result<()> {
    match options.mode {
        Mode::DnsUdp => return print(&dns::udp(options)?),
        Mode::DnsTcp => return print(&dns::tcp(options, 1)?),
        Mode::DnsTcpKept => return print(&dns::tcp(options, 50)?),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        match options.mode {
            Mode::Ready => return connect::ready(options).await,
            Mode::Idle => return idle::hold(options).await,
            Mode::Connect => workers(options, connect::worker).await,
            Mode::Echo => workers(options, echo::worker).await,
            Mode::Http => workers(options, http::worker).await,
            Mode::Up => workers(options, bulk::up).await,
            _ => workers(options, bulk::down).await,
        }
        .and_then(|report| print(&report))
    })
}

fn print(report: &Report) -> Result<()> {
    println!("{}", serde_json::to_string(report)?);
    Ok(())
}

/// Runs `options.connections` workers on this thread until the tally says that it is enough.
async fn workers<F>(options: &Options, worker: impl Fn(Rc<Options>, Rc<Tally>, usize) -> F) -> Result<Report>
where
    F: Future<Output = Result<()>> + 'static,
{
    let options = Rc::new(options.clone());
    let tally = Rc::new(Tally::new(&options));
    let mut running = Vec::new();
    for number in 0..options.connections {
        running.push(tokio::task::spawn_local(worker(options.clone(), tally.clone(), number)));
    }
    let limit = tokio::time::Instant::now() + Duration::from_secs_f64(options.seconds) + PATIENCE;
    for task in running {
        match tokio::time::timeout_at(limit, task).await {
            Ok(result) => tally.note(result.context("a worker ended")?),
            Err(_) => tally.note(Err(anyhow::anyhow!("no answer for 10 s"))),
        }
    }
    Ok(tally.report())
}

/// Connects and sends a hello for the name.
async fn open(options: &Options, hello: &[u8]) -> Result<TcpStream> {
    let stream = TcpStream::connect(options.to).await.context("connect")?;
    stream.set_nodelay(true)?;
    let mut stream = stream;
    tokio::io::AsyncWriteExt::write_all(&mut stream, hello)
        .await
        .context("send the hello")?;
    Ok(stream)
}
