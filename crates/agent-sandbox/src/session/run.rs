//! One session from its first request to podman to its last.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::{try_join, try_join3};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::containers::{Command, EGRESS_NETWORK, Parts};
use super::directory::SessionDir;
use super::failure::{Cause, Failure};
use super::output::Output;
use super::sweep;
use super::undo::{SESSION_LABEL, undo_by_name};
use crate::images::Images;
use crate::keeper::Keeper;
use crate::owner::Owner;
use crate::podman::{ApiError, Attached, Client, ContainerSpec, PodSpec, Subnet};
use crate::progress::Progress;
use crate::rules::LaunchDir;
use crate::terminal::{Pump, PumpEnd, RawMode, environment, is_interactive, size};
use crate::trace::Trace;

/// What a session is made from.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) command: Vec<String>,
    pub(crate) launch_dir: LaunchDir,
    pub(crate) policy: Vec<u8>,
    pub(crate) images: Images,
    pub(crate) home_volume: String,
    pub(crate) runtime_dir: PathBuf,
}

/// How a session ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The command ended by itself, with this exit code.
    Exited(i32),
    /// A signal to the launcher.
    Interrupted,
    /// Nobody reads the output any more.
    OutputClosed,
    /// A step failed.
    Failed(Failure),
}

/// Runs a session, and undoes it however it ends.
pub(crate) async fn run(job: &Job, trace: &Trace) -> Ended {
    let begun = begin(job);
    let (dir, owner, keeper, interrupts) = match Failure::of("preparing the session", begun) {
        Ok(begun) => begun,
        Err(failure) => return Ended::Failed(failure),
    };
    let mut session = Session {
        job,
        trace,
        dir,
        owner,
        keeper,
        undo: None,
    };
    let mut ended = tokio::select! {
        biased;
        () = interrupted(interrupts) => Ended::Interrupted,
        ended = session.run() => ended.unwrap_or_else(Ended::Failed),
    };
    let Session { keeper, undo, .. } = session;
    let undone = match undo {
        // Only a session that started and ended by itself has no request under way.
        Some((client, parts)) if matches!(ended, Ended::Exited(_)) => {
            let (pod, router) = (&parts.session, parts.router_name());
            trace
                .step("undo", undo_by_name(&client, pod, &router, pod))
                .await
                .is_ok()
        }
        _ => false,
    };
    // A call that failed because podman's service is gone says less than the service itself did.
    if let Ended::Failed(Failure { cause, .. }) = &mut ended
        && matches!(cause, Cause::Api(ApiError::Unreachable(_)))
        && keeper.service_is_gone()
    {
        *cause = Cause::ServiceEnded(keeper.last_words());
    }
    if !trace.step("podman service stopped", keeper.finish(undone)).await {
        eprintln!("agent-sandbox: something of this session may be left; the next session sweeps it away");
    }
    ended
}

fn begin(job: &Job) -> std::io::Result<(SessionDir, Owner, Keeper, [Signal; 3])> {
    let interrupts = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [a, b, c] = interrupts.map(signal);
    let interrupts = [a?, b?, c?];
    let owner = Owner::this_process()?;
    let dir = SessionDir::create(&job.runtime_dir, &owner)?;
    match Keeper::start(&dir) {
        Ok(keeper) => Ok((dir, owner, keeper, interrupts)),
        Err(error) => {
            let _ = dir.remove();
            Err(error)
        }
    }
}

async fn interrupted([mut a, mut b, mut c]: [Signal; 3]) {
    tokio::select! { _ = a.recv() => {}, _ = b.recv() => {}, _ = c.recv() => {} }
}

struct Session<'a> {
    job: &'a Job,
    trace: &'a Trace,
    dir: SessionDir,
    owner: Owner,
    keeper: Keeper,
    /// Set once everything is made and known by name.
    undo: Option<(Client, Parts)>,
}

impl Session<'_> {
    async fn run(&mut self) -> Result<Ended, Failure> {
        let trace = self.trace;
        let policy_dir = Failure::of(
            "writing the router's allowlist",
            self.dir.write_policy(&self.job.policy),
        )?;
        let client = Failure::of(
            "starting podman",
            trace.step("podman service", self.keeper.client()).await,
        )?;
        let mut labels = BTreeMap::from([(SESSION_LABEL.to_owned(), self.dir.name().to_owned())]);
        labels.extend(self.owner.labels().map(|(key, value)| (key.to_owned(), value)));
        let parts = Parts {
            session: self.dir.name().to_owned(),
            labels,
            router_image: self.job.images.router.clone(),
            sandbox_image: self.job.images.sandbox.clone(),
            policy_dir: policy_dir.to_string_lossy().into_owned(),
            controllers: cgroup_controllers(),
        };
        let terminal = is_interactive();
        let command = Command {
            words: self.job.command.clone(),
            launch_dir: self.job.launch_dir.path().to_owned(),
            home_volume: self.job.home_volume.clone(),
            terminal,
            env: environment(terminal),
        };
        let network = networks(&client, trace, &parts, &command.home_volume).await?;
        let made = Made::create(&client, trace, &parts, &command, network.router()).await?;
        if !self.job.launch_dir.is_unchanged() {
            let cause = Cause::DirectoryChanged(self.job.launch_dir.path().to_owned());
            return Err(Failure {
                step: "mounting the launch directory",
                cause,
            });
        }
        self.keeper.everything_is_made();
        self.undo = Some((client.clone(), parts));
        let Made {
            router,
            forwarder,
            sandbox,
            attached,
        } = made;
        let work = command_to_its_end(&client, trace, &sandbox, attached, terminal);
        let ended = alongside(work, self.sweep(&client)).await?;
        for (output, name) in [(&router, "router"), (&forwarder, "forwarder")] {
            if let Some(lines) = output.ended() {
                eprintln!(
                    "agent-sandbox: the {name} ended during the session: {}",
                    lines.join("; ")
                );
            }
        }
        Ok(ended)
    }

    /// Clears away what other sessions left. A failure is theirs, not this session's.
    async fn sweep(&self, client: &Client) {
        // The command starts first.
        tokio::time::sleep(Duration::from_millis(500)).await;
        sweep::sweep_directories(&self.job.runtime_dir, &self.owner);
        if let Ok(stale) = sweep::stale_sessions(client, &self.owner).await {
            let _ = sweep::sweep(client, &stale).await;
        }
    }
}

/// Does `work`, and `other` beside it for as long as that takes.
async fn alongside<T>(work: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = other => {}
    }
    work.await
}

/// Everything a session needs, ready for the command.
struct Made {
    router: Output,
    forwarder: Output,
    sandbox: String,
    attached: Attached,
}

/// What depends on nothing else: the networks and the volume.
async fn networks(client: &Client, trace: &Trace, parts: &Parts, home_volume: &str) -> Result<Subnet, Failure> {
    let labels: HashMap<String, String> = parts.labels.clone().into_iter().collect();
    let network = async {
        let made = client.create_internal_network(&parts.session, &labels).await;
        Failure::of("creating the session's network", made)
    };
    let egress = async {
        Failure::of(
            "creating the egress network",
            client.ensure_egress_network(EGRESS_NETWORK).await,
        )
    };
    let volume = async { Failure::of("creating the home volume", client.ensure_volume(home_volume).await) };
    let (network, (), ()) = try_join3(
        trace.step("session network", network),
        trace.step("egress network", egress),
        trace.step("home volume", volume),
    )
    .await?;
    Ok(network)
}

/// The cgroup controllers that podman may use, as it finds them itself (cgroups(7)): those of our own cgroup. `podman
/// info` would tell too, but it also asks the package manager for versions, which takes longer than a whole start.
fn cgroup_controllers() -> Vec<String> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap_or_default();
    let text = std::fs::read_to_string(format!("/sys/fs/cgroup{path}/cgroup.controllers")).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

impl Made {
    async fn create(
        client: &Client,
        trace: &Trace,
        parts: &Parts,
        command: &Command,
        address: Ipv4Addr,
    ) -> Result<Self, Failure> {
        let maker = Maker {
            client,
            trace,
            progress: Progress::new(),
        };
        let router = async {
            let id = maker.created(parts.router(address), "creating the router").await?;
            maker.started(&id, ["creating the router", "starting the router"]).await
        };
        let pod = async {
            let infra = maker.pod(&parts.pod(address)).await?;
            // Started by itself: two containers that find it not running would both try to start it, and one would fail.
            let start = async { Failure::of("starting the pod", client.start(&infra).await) };
            let (forwarder, sandbox, ()) = try_join3(
                maker.created(parts.forwarder(address), "creating the forwarder"),
                maker.created(parts.sandbox(command), "creating the sandbox"),
                trace.step("pod started", start),
            )
            .await?;
            let prepared = async { Failure::of("creating the sandbox", client.attach(&sandbox).await) };
            let started = maker.started(&forwarder, ["creating the forwarder", "starting the forwarder"]);
            let (forwarder, attached) = try_join(
                trace.step("forwarder", started),
                trace.step("sandbox prepared", prepared),
            )
            .await?;
            Ok((forwarder, sandbox, attached))
        };
        let (router, (forwarder, sandbox, attached)) = try_join(trace.step("router", router), pod).await?;
        Ok(Self {
            router,
            forwarder,
            sandbox,
            attached,
        })
    }
}

/// Makes the parts.
struct Maker<'a> {
    client: &'a Client,
    trace: &'a Trace,
    progress: Progress,
}

impl Maker<'_> {
    /// Creates the pod, compares it with what was asked, and returns its own container. Nothing runs yet.
    async fn pod(&self, spec: &PodSpec) -> Result<String, Failure> {
        let step = "creating the pod";
        let work = async {
            let pod = Failure::of(step, self.client.create_pod(spec).await)?;
            let infra = Failure::of(step, self.client.infra_of(&pod).await)?;
            Failure::of(step, Failure::of(step, self.client.verify_pod(&infra, spec).await)?)?;
            Ok(infra)
        };
        self.trace.step("pod created", work).await
    }

    /// Creates a container and compares it with what was asked; an image that is not there is pulled first.
    async fn created(&self, spec: ContainerSpec, step: &'static str) -> Result<String, Failure> {
        // With an image that is new here, podman maps its files to the user's ids (podman #13805).
        let text = format!("{step} (the first time with a new image this can take a minute)");
        let created = match self.progress.explain(&text, self.client.create_container(&spec)).await {
            Err(error) if error.is_not_found() => {
                self.pull(&spec.image, step).await?;
                self.progress.explain(&text, self.client.create_container(&spec)).await
            }
            created => created,
        };
        Failure::of(step, Failure::of(step, created)?)
    }

    async fn pull(&self, image: &str, step: &'static str) -> Result<(), Failure> {
        if image.starts_with("localhost/") {
            let cause = Cause::NoImage(image.to_owned());
            return Err(Failure { step, cause });
        }
        let say = |line: &str| self.progress.show(&format!("pulling {image}: {line}"));
        Failure::of("pulling the image", self.client.pull(image, say).await)
    }

    /// Starts a container of ours and waits for its `ready`.
    async fn started(&self, id: &str, [create, start]: [&'static str; 2]) -> Result<Output, Failure> {
        let output = Output::follow(Failure::of(create, self.client.attach(id).await)?);
        Failure::of(start, self.client.start(id).await)?;
        Failure::of(start, output.ready().await)?;
        Ok(output)
    }
}

/// Starts the command and stays with it until it ends.
async fn command_to_its_end(
    client: &Client,
    trace: &Trace,
    id: &str,
    attached: Attached,
    terminal: bool,
) -> Result<Ended, Failure> {
    let step = "starting the command";
    let mut pump = Failure::of(step, Pump::start(attached, terminal))?;
    let mut resized = Failure::of(step, signal(SignalKind::window_change()))?;
    if terminal && let Some((columns, rows)) = size() {
        Failure::of(step, client.resize(id, columns, rows).await)?;
    }
    let raw_mode = if terminal {
        Some(Failure::of(step, RawMode::enter())?)
    } else {
        None
    };
    Failure::of(step, trace.step("command started", client.start(id)).await)?;
    Failure::of(step, pump.feed())?;
    let output = loop {
        tokio::select! {
            end = pump.ended() => break end,
            _ = resized.recv(), if terminal => if let Some((columns, rows)) = size() {
                // A command that ends meanwhile has no terminal any more.
                let _ = client.resize(id, columns, rows).await;
            },
        }
    };
    if matches!(output, PumpEnd::OutputClosed) {
        return Ok(Ended::OutputClosed);
    }
    let code = Failure::of(
        "waiting for the command",
        trace.step("exit code", client.wait(id)).await,
    );
    drop(raw_mode);
    let code = code?;
    if matches!(output, PumpEnd::Cut) {
        return Err(Failure {
            step: "reading the command's output",
            cause: Cause::OutputCut,
        });
    }
    Ok(Ended::Exited(code))
}
