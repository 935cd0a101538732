//! The ports of the search import: studies, the progress and attempts of reading, and marks of duplicates.

mod duplicates;
mod files;
pub(crate) mod indexes;
pub(crate) mod names;
mod parse_attempts;
mod progress;
mod studies;
mod study_key;
mod words;

use imports::{FileId, StudyId};
use mongodb::bson::Bson;

use crate::value::Key;

impl Key for FileId {
    fn key(&self) -> Bson {
        self.as_uuid().key()
    }
}

impl Key for StudyId {
    fn key(&self) -> Bson {
        self.as_uuid().key()
    }
}
