//! The policy in force: the allowlist and the plan made from it, swapped as one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use allowlist::{Allowlist, Diagnostics, Plan, PlanError};

use crate::cli::DEFAULT_ALLOWLIST;

/// An allowlist and its plan.
pub(crate) struct Policy {
    pub(crate) allowlist: Allowlist,
    pub(crate) plan: Plan,
}

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("cannot read the allowlist {path}: {error}{hint}", path = path.display(), hint = hint(path))]
    Read { path: PathBuf, error: io::Error },
    #[error("the allowlist came from standard input, which can be read only once; use a file to be able to reload")]
    Stdin,
    /// Drawn in full by whoever reports it.
    #[error("the allowlist {} has {} fault(s)", .0.file(), .0.total())]
    Faults(Diagnostics),
    #[error("the allowlist cannot be served: {0}")]
    Plan(#[from] PlanError),
}

/// For who has not named a file: the default is the image's.
fn hint(path: &Path) -> &'static str {
    if path == Path::new(DEFAULT_ALLOWLIST) {
        "; give yours with --allowlist FILE"
    } else {
        ""
    }
}

/// Reads and parses the allowlist at `path`; `-` is standard input.
///
/// # Errors
/// When it cannot be read or has faults: then nothing is allowed.
pub(crate) fn load(path: &Path) -> Result<(Allowlist, Diagnostics), LoadError> {
    let read = |error| LoadError::Read {
        path: path.to_owned(),
        error,
    };
    // One byte more than the parser takes, so that it sees that the file is too long; a pipe could go on for ever.
    let most = Allowlist::MAX_FILE_LEN as u64 + 1;
    let mut text = Vec::new();
    let name = if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut text).map_err(read)?;
        "standard input".into()
    } else {
        let file = std::fs::File::open(path).map_err(read)?;
        file.take(most).read_to_end(&mut text).map_err(read)?;
        path.to_string_lossy()
    };
    let parsed = Allowlist::parse(&text, &name);
    let allowlist = parsed.result.map_err(LoadError::Faults)?;
    Ok((allowlist, parsed.warnings))
}

/// As [`load`], in a thread of its own: a pipe may take its time, and a long list its own, and meanwhile connections and
/// signals are to be served.
///
/// # Errors
/// As [`load`].
pub(crate) async fn load_aside(path: &Path) -> Result<(Allowlist, Diagnostics), LoadError> {
    let owned = path.to_owned();
    let task = tokio::task::spawn_blocking(move || load(&owned));
    task.await.unwrap_or_else(|error| {
        Err(LoadError::Read {
            path: path.to_owned(),
            error: io::Error::other(error),
        })
    })
}

/// As [`load_aside`], for a reload.
///
/// # Errors
/// As [`load`], and for standard input: it is at its end, which would read as an empty list.
pub(crate) async fn load_again(path: &Path) -> Result<(Allowlist, Diagnostics), LoadError> {
    if path == Path::new("-") {
        return Err(LoadError::Stdin);
    }
    load_aside(path).await
}

impl Policy {
    pub(crate) fn new(allowlist: Allowlist) -> Result<Self, PlanError> {
        let plan = Plan::new(&allowlist)?;
        Ok(Self { allowlist, plan })
    }

    /// The policy that follows this one: what is in both keeps its addresses and ports.
    pub(crate) fn successor(&self, allowlist: Allowlist) -> Result<Self, PlanError> {
        let plan = self.plan.successor(&allowlist)?;
        Ok(Self { allowlist, plan })
    }
}

/// The policy that every new request is judged by.
pub(crate) struct PolicyStore(RwLock<Arc<Policy>>);

impl PolicyStore {
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self(RwLock::new(policy))
    }

    pub(crate) fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, policy: Arc<Policy>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn standard_input_is_not_read_again() {
        let error = load_again(Path::new("-")).await.map(|_| ()).unwrap_err();
        assert!(matches!(error, LoadError::Stdin), "{error}");
    }
}
