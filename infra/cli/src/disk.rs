//! A disk that takes no more data while an import is under way.

use messages::store::is_refused_by_disk;

use crate::args::Place;
use crate::interrupt::resume_command;
use crate::workspace::Workspace;

/// A disk that took no more data. All data that was stored before is kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "the disk of {place} is full, or takes no more data ({why}); free some space, then `{resume}` continues"
)]
pub(crate) struct Full {
    place: String,
    why: String,
    resume: String,
}

impl Full {
    /// Returns the error of an import in a data directory; none while its disk takes all data.
    pub(crate) fn of(workspace: &Workspace, place: &Place) -> Option<Self> {
        let why = workspace.home()?.store.disk_refusal()?;
        Some(Self { place: workspace.name(), why, resume: resume_command(place) })
    }

    /// Returns an error of an import, with the next step if the disk is the cause of it.
    pub(crate) fn explain(error: anyhow::Error, workspace: &Workspace, place: &Place) -> anyhow::Error {
        let of_disk = is_refused_by_disk(error.as_ref());
        if workspace.home().is_none() || !of_disk {
            return error;
        }
        let why = messages::store::chain(error.as_ref());
        Self { place: workspace.name(), why, resume: resume_command(place) }.into()
    }
}
