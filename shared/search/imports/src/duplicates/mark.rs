//! The mark of a study that repeats an earlier one, and its stored form.

use ::duplicates::{Reason, Tier};
use serde::{Deserialize, Serialize};

use crate::vocabulary::StudyRef;
use crate::{FileId, SearchId};

/// The mark of a study that repeats, or may repeat, an earlier one of its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// The search that contains the earlier study.
    pub search_id: SearchId,
    /// The file that contains the earlier study.
    pub file_id: FileId,
    /// The position of that file among the files of its search, from 0.
    pub position: u32,
    /// The record number of the earlier study.
    pub record: u64,
    /// The certainty that both are the same work.
    pub tier: Tier,
    /// The matching rule.
    pub reason: Reason,
}

impl Duplicate {
    /// Returns the location of the earlier study.
    pub fn of(&self) -> StudyRef {
        StudyRef { search_id: self.search_id, file_id: self.file_id, record: self.record }
    }

    /// Returns `true` if the study is treated as a duplicate. Possible duplicates wait for a reviewer's decision.
    pub fn is_same(&self) -> bool {
        self.tier > Tier::Possible
    }
}
