//! Identification of studies and files in stored documents.

use imports::{FileId, SearchId, StudyId, StudyRef};
use mongodb::bson::{Document, doc};

use super::names::study::{FILE, RECORD, SEARCH};
use crate::value::{Key, count_field, uuid_field};

/// Returns the filter of the documents of a file.
pub(crate) fn of_file(search: SearchId, file: FileId) -> Document {
    doc! { SEARCH: search.key(), FILE: file.key() }
}

/// Returns the filter of the one document about a file. Records are numbered from 1, so 0 identifies the file itself.
pub(crate) fn by_id(search: SearchId, file: FileId) -> Document {
    doc! { "_id": StudyId::of(search, file, 0).key() }
}

/// Reads the search, file and record of a stored study.
pub(crate) fn study_ref(stored: &Document) -> Result<StudyRef, String> {
    let (search, file) = (uuid_field(stored, SEARCH)?, uuid_field(stored, FILE)?);
    Ok(StudyRef {
        search_id: SearchId::from_uuid(search),
        file_id: FileId::from_uuid(file),
        record: count_field(stored, RECORD)?,
    })
}
