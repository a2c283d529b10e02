//! What sessions left that nobody could undo any more: after a power cut, or when the keeper was killed too.

use std::collections::BTreeSet;
use std::path::Path;

use super::directory::{PREFIX, SessionDir};
use super::undo::{SESSION_LABEL, undo_by_label};
use crate::owner::{Life, Owner};
use crate::podman::{ApiError, Client};

/// The names of the sessions whose launcher is gone.
///
/// # Errors
/// Podman's, from listing.
pub(crate) async fn stale_sessions(client: &Client, here: &Owner) -> Result<BTreeSet<String>, ApiError> {
    let mut found = client.containers_labelled(SESSION_LABEL).await?;
    found.extend(client.pods_labelled(SESSION_LABEL).await?);
    found.extend(client.networks_labelled(SESSION_LABEL).await?);
    let stale = found.iter().filter(|thing| {
        let owner = Owner::from_labels(&thing.labels);
        owner.is_some_and(|owner| owner.life(here) == Life::Gone)
    });
    Ok(stale
        .filter_map(|thing| thing.labels.get(SESSION_LABEL).cloned())
        .collect())
}

/// Removes stale sessions.
///
/// # Errors
/// The first one that could not be removed.
pub(crate) async fn sweep(client: &Client, stale: &BTreeSet<String>) -> Result<(), ApiError> {
    for session in stale {
        undo_by_label(client, session).await?;
    }
    Ok(())
}

/// Removes the directories of sessions whose launcher is gone, unless their keeper's podman service still works on it.
pub(crate) fn sweep_directories(runtime_dir: &Path, here: &Owner) {
    let Ok(entries) = std::fs::read_dir(runtime_dir) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Some(dir) = SessionDir::existing(entry.path()) else {
            continue;
        };
        let life = |file| {
            let owner = std::fs::read_to_string(file)
                .ok()
                .and_then(|text| Owner::from_text(&text));
            owner.map_or(Life::Unknown, |owner| owner.life(here))
        };
        if life(dir.owner_file()) == Life::Gone && life(dir.service_file()) != Life::Alive {
            let _ = dir.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_sessions_go() {
        let base = tempfile::tempdir().unwrap();
        let here = Owner::this_process().unwrap();
        let alive = SessionDir::create(base.path(), &here).unwrap();
        let dead = SessionDir::create(base.path(), &here).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let gone = here.sibling(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::write(dead.owner_file(), gone.to_text()).unwrap();
        let being_undone = SessionDir::create(base.path(), &here).unwrap();
        std::fs::write(being_undone.owner_file(), gone.to_text()).unwrap();
        std::fs::write(being_undone.service_file(), here.to_text()).unwrap();
        let other = base.path().join("other");
        std::fs::create_dir(&other).unwrap();
        sweep_directories(base.path(), &here);
        assert!(alive.path().exists() && being_undone.path().exists() && other.exists());
        assert!(!dead.path().exists());
    }
}
