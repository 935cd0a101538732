//! The mark of a study that is there before, and how it is stored.

use ::duplicates::{Reason, Tier};
use serde::{Deserialize, Serialize};

use super::StudyAt;
use crate::{FileId, SearchId};

/// The mark of a study that repeats another one of its project, or possibly does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// The search that brought the study that it repeats.
    pub search_id: SearchId,
    /// That study's file.
    pub file_id: FileId,
    /// The place of that file among those of its search, from 0.
    pub position: u32,
    /// That study's record.
    pub record: u64,
    /// How sure it is that the two are the same work.
    pub tier: Tier,
    /// What the two have in common.
    pub reason: Reason,
}

impl Duplicate {
    /// Where the study is that it repeats.
    pub fn of(&self) -> StudyAt {
        StudyAt { search_id: self.search_id, file_id: self.file_id, record: self.record }
    }

    /// Whether the study is taken for the same work. One that is only possibly the same is left for somebody to say.
    pub fn is_same(&self) -> bool {
        self.tier > Tier::Possible
    }
}
