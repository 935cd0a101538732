//! Damaged studies that have ended streamed exports. A response that has begun cannot report an error, so the next
//! request for the same studies is refused with the reason.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use imports::DamagedRecord;
use messages::StoreError;
use service::SearchService;
use service::exported_studies::{DamagedStudy, FileToExport};
use service::selection::StudySelection;

/// The maximum number of remembered studies; the oldest is forgotten.
const MAX_KNOWN: usize = 100;

/// The damaged studies of this process, with the selections that contain them.
#[derive(Default)]
pub(super) struct KnownDamage(Mutex<VecDeque<(StudySelection, DamagedStudy)>>);

impl KnownDamage {
    /// Remembers the study that has ended an export.
    pub(super) fn add(&self, selection: &StudySelection, damaged: &DamagedStudy) {
        let mut known = self.lock();
        let new = (selection.clone(), damaged.clone());
        if !known.contains(&new) {
            known.truncate(MAX_KNOWN - 1);
            known.push_front(new);
        }
    }

    /// Returns a study that would end an export of these files again. A study that is readable again is forgotten.
    pub(super) async fn find(
        &self,
        service: &SearchService,
        selection: &StudySelection,
        files: &[FileToExport],
    ) -> Result<Option<DamagedStudy>, StoreError> {
        let is_of = |study: &DamagedStudy| {
            let study = &study.study;
            files.iter().any(|of| of.search == study.search_id && of.file.file_id == study.file_id)
        };
        let known: Vec<_> =
            self.lock().iter().filter(|(of, study)| of == selection && is_of(study)).cloned().collect();
        for (of, damaged) in known {
            let at = damaged.study;
            match service.study(at.search_id, at.file_id, at.record).await {
                Err(error) if DamagedRecord::of(&error).is_some() => return Ok(Some(damaged)),
                read => drop(read?),
            }
            self.lock().retain(|one| *one != (of.clone(), damaged.clone()));
        }
        Ok(None)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(StudySelection, DamagedStudy)>> {
        // A panic cannot leave the list half changed, so a poisoned lock is used as it is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
