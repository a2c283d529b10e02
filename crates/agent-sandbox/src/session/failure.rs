//! A step that failed, in words for the person in front of it.

use crate::podman::{ApiError, Differences};

/// Which step, and why.
#[derive(Debug, thiserror::Error)]
#[error("{step} failed: {cause}")]
pub(crate) struct Failure {
    pub(crate) step: &'static str,
    pub(crate) cause: Cause,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("{0}")]
    Api(#[from] ApiError),
    #[error("podman made something else than was asked for, so it is not started: {0}")]
    Differs(#[from] Differences),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("podman's service ended{}", quoted(.0))]
    ServiceEnded(Vec<String>),
    #[error("podman's service did not answer within {0} s")]
    ServiceSilent(u64),
    #[error("this podman is version {0}; version 4.3 or newer is needed")]
    PodmanTooOld(String),
    #[error("it ended before it was ready{}", quoted(.0))]
    EndedEarly(Vec<String>),
    #[error("it was not ready within {seconds} s{}", quoted(.output))]
    NotReady { seconds: u64, output: Vec<String> },
    #[error(
        "there is no image {0} here; build it with `make images`, or name another one in $AGENT_SANDBOX_IMAGE or \
         $AGENT_SANDBOX_ROUTER_IMAGE"
    )]
    NoImage(String),
    #[error("{0} was replaced while the session started")]
    DirectoryChanged(String),
    #[error("podman's output is cut short: the exit code may be right, the output is not whole")]
    OutputCut,
}

/// The last lines of a container or a service, indented under the sentence that speaks of them.
fn quoted(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    lines.iter().fold(String::from("; its last output:"), |text, line| {
        format!("{text}\n    {line}")
    })
}

impl Failure {
    /// Wraps what `step` came back with.
    pub(crate) fn of<T, E: Into<Cause>>(step: &'static str, result: Result<T, E>) -> Result<T, Self> {
        result.map_err(|cause| Self {
            step,
            cause: cause.into(),
        })
    }

    /// The exit code: 125 as podman's own, or 1 for what is refused.
    pub(crate) const fn exit_code(&self) -> u8 {
        if matches!(self.cause, Cause::DirectoryChanged(_)) {
            1
        } else {
            125
        }
    }
}
