//! The limit of exports that are sent concurrently.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use imports::ProjectId;

/// The maximum number of exports of one project that are sent concurrently. Each one reads studies as fast as its
/// client receives them.
pub(super) const MAX_SENT: usize = 8;

/// The exports in progress by project.
#[derive(Default)]
pub(super) struct Exports(Arc<Mutex<BTreeMap<ProjectId, usize>>>);

/// An export in progress, until it is dropped.
pub(super) struct ExportSlot {
    project: ProjectId,
    all: Arc<Mutex<BTreeMap<ProjectId, usize>>>,
}

impl Exports {
    /// Counts one more export, or returns `None` if the project has the maximum number.
    pub(super) fn begin(&self, project: ProjectId) -> Option<ExportSlot> {
        // A panic cannot leave a count half changed, so a poisoned lock is used as it is.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = all.entry(project).or_default();
        *sent = Some(*sent + 1).filter(|sent| *sent <= MAX_SENT)?;
        Some(ExportSlot { project, all: Arc::clone(&self.0) })
    }
}

impl Drop for ExportSlot {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = all.get_mut(&self.project) {
            *sent -= 1;
            if *sent == 0 {
                all.remove(&self.project);
            }
        }
    }
}
