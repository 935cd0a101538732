//! A disk that rejects writes during an import.

use messages::store::is_refused_by_disk;

use crate::args::Location;
use crate::interrupt::resume_command;
use crate::workspace::Workspace;

/// The error of a disk that rejected a write. All data stored before is kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "the disk of {workspace} is full or rejects writes ({why}); free some space, then `{resume}` continues"
)]
pub(crate) struct DiskFull {
    workspace: String,
    why: String,
    resume: String,
}

impl DiskFull {
    /// Returns the error of an import in a data directory; `None` while its disk accepts writes.
    pub(crate) fn of(workspace: &Workspace, location: &Location) -> Option<Self> {
        let why = workspace.home()?.store.disk_refusal()?;
        Some(Self { workspace: workspace.name(), why, resume: resume_command(location) })
    }

    /// Adds the next step to an error of an import that the disk caused. Returns other errors unchanged.
    pub(crate) fn explain(error: anyhow::Error, workspace: &Workspace, location: &Location) -> anyhow::Error {
        let of_disk = is_refused_by_disk(error.as_ref());
        if workspace.home().is_none() || !of_disk {
            return error;
        }
        let why = messages::store::chain(error.as_ref());
        Self { workspace: workspace.name(), why, resume: resume_command(location) }.into()
    }
}
