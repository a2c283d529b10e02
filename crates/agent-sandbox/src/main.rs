//! `agent-sandbox`: a coding agent in a rootless podman sandbox whose only way out is an allowlist.

mod allowed_paths;
mod cli;
mod environment;
mod files;
mod images;
mod keeper;
mod owner;
mod paths;
mod podman;
mod policy;
mod progress;
mod rules;
mod session;
mod terminal;
mod trace;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cli::Request;
use environment::Environment;
use images::{Images, VERSION};
use rules::Surroundings;
use session::{Ended, Job};
use trace::Trace;

/// The session was refused before anything was started.
const REFUSED: u8 = 1;
/// Podman, or something it started for us, failed (podman-run(1)).
const PODMAN_FAILED: u8 = 125;
/// Interrupted, as a shell says it: 128 and SIGINT.
const INTERRUPTED: u8 = 130;
/// Nobody reads the output: 128 and SIGPIPE.
const OUTPUT_CLOSED: u8 = 141;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.next().is_some_and(|name| name == keeper::NAME) {
        return keeper::main(arguments.next().map(PathBuf::from).unwrap_or_default());
    }
    match cli::parse(arguments) {
        Ok(Request::Help) => print(cli::HELP),
        Ok(Request::Version) => print(&format!("{VERSION}\n")),
        Ok(Request::Run(command)) => {
            let code = launch(command);
            // The thread that reads standard input may never come back: the process ends without it.
            let _ = std::io::stdout().flush();
            std::process::exit(i32::from(code))
        }
        Err(usage) => refuse(&usage).into(),
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => OUTPUT_CLOSED.into(),
    }
}

fn say(text: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "agent-sandbox: {text}");
}

fn refuse(why: &dyn std::fmt::Display) -> u8 {
    say(why);
    REFUSED
}

/// Runs a session and returns the exit code.
fn launch(command: Vec<String>) -> u8 {
    let lookup = |name: &str| std::env::var_os(name);
    let environment = match Environment::read(&lookup) {
        Ok(environment) => environment,
        Err(error) => return refuse(&error),
    };
    let trace = Trace::new(environment.trace);
    let job = match prepare(command, &environment) {
        Ok(job) => job,
        Err(error) => return refuse(&error),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    let ended = runtime.block_on(session::run(&job, &trace));
    if let Some(report) = trace.report() {
        let _ = std::io::stderr().write_all(report.as_bytes());
    }
    match ended {
        // Podman's are those of wait(2): 0 to 255.
        Ended::Exited(code) => u8::try_from(code).unwrap_or(PODMAN_FAILED),
        Ended::Interrupted => INTERRUPTED,
        Ended::OutputClosed => OUTPUT_CLOSED,
        Ended::Failed(failure) => {
            say(&failure);
            failure.exit_code()
        }
    }
}

/// Everything that can refuse a session, before anything of it exists.
fn prepare(command: Vec<String>, environment: &Environment) -> Result<Job, Box<dyn std::error::Error>> {
    if rustix::process::geteuid().is_root() {
        return Err("run it as an ordinary user: the sandbox is rootless, and root's podman is not".into());
    }
    let cwd = std::env::current_dir().map_err(|error| format!("the current directory cannot be read: {error}"))?;
    let runtime_dir = session::runtime_dir(environment.runtime_dir.as_deref())?;
    let allowlist = environment.allowlist_file(&cwd);
    let around = surroundings(environment, &allowlist, &runtime_dir)?;
    let launch_dir = rules::check(&cwd, &around)?;
    if policy::ensure(&allowlist, Path::new(launch_dir.path()))? {
        say(&format!("created {} from the defaults", allowlist.display()));
    }
    let terminal = std::io::stderr().is_terminal();
    let policy = policy::read(&allowlist, terminal)?;
    // Advice for a person, not for whoever reads a command's standard error, and one line of it: it comes every time.
    if terminal && policy.warnings > 0 {
        let (count, file) = (policy.warnings, allowlist.display());
        say(&format!(
            "{count} of the allowlist's lines deserve a look: as-router --check {file}"
        ));
    }
    Ok(Job {
        command,
        launch_dir,
        policy: policy.bytes,
        images: Images::of(environment),
        home_volume: environment
            .home_volume
            .clone()
            .unwrap_or_else(|| "agent-sandbox-home".to_owned()),
        runtime_dir,
    })
}

fn surroundings(
    environment: &Environment,
    allowlist: &Path,
    runtime_dir: &Path,
) -> Result<Surroundings, allowed_paths::BadAllowedPaths> {
    let home = &environment.home;
    let allowed_paths_file = environment.allowed_paths_file();
    let roots = allowed_paths::read(&allowed_paths_file, home)?;
    let mut configuration = vec![
        environment.config_dir(),
        allowed_paths_file.clone(),
        allowlist.to_path_buf(),
    ];
    configuration.extend(allowlist.parent().map(Path::to_path_buf));
    Ok(Surroundings {
        home: home.clone(),
        private: vec![
            home.join(".ssh"),
            home.join(".gnupg"),
            home.join(".config"),
            environment.config_home.clone(),
            runtime_dir.to_path_buf(),
            home.join(".local/share/containers"),
            environment.data_home.join("containers"),
        ],
        system: rules::SYSTEM_PLACES.map(PathBuf::from).to_vec(),
        configuration,
        search_path: environment.search_path.clone(),
        roots,
        allowed_paths_file,
    })
}
