//! Names of the search import's own collections, and of the fields that queries and indexes use. These names are
//! stored, so they must not change.

/// Names of the collections.
pub(crate) mod collections {
    use crate::names::collections::{ACT, FAILURE, HISTORY, OPERATION, RECORD, SAGA, SESSION, VIEW};

    /// Progress of reading files: one document per search, read by its id. The progress is not part of the view,
    /// because reports may arrive before the view exists. Reports would also compete with the saga for a document that
    /// is replaced as a whole. Progress has no value after the end of the search, so a TTL index deletes it.
    pub const PROGRESS: &str = "pmSearchImportProgress";
    /// Studies.
    pub const STUDY: &str = "pmStudy";
    /// Records that could not be read. They are separate from the studies, so that readers of `pmStudy` need not
    /// exclude them.
    pub const QUARANTINE: &str = "pmStudyQuarantine";
    /// Files that were read completely.
    pub const FILE: &str = "pmStudyFile";
    /// Words of the studies of a file, by parts of the file and the first two characters of the words.
    pub const WORD: &str = "pmStudyWord";
    /// Revisions of the projects' studies: one document per project.
    pub const PROJECT: &str = "pmProject";
    /// Attempts to read files, and their checkpoints. A TTL index deletes them; a file without a document is read from
    /// its beginning.
    pub const READING: &str = "pmStudyReading";

    /// All collections of the search import, including those of the engine.
    pub const ALL: [&str; 15] = [
        SAGA, VIEW, PROGRESS, STUDY, QUARANTINE, FILE, WORD, PROJECT, READING, SESSION, RECORD, FAILURE,
        OPERATION, ACT, HISTORY,
    ];
}

/// Fields of the progress of a search.
pub(crate) mod progress {
    /// Time of the last report by the server's clock, as a date for the TTL index. The port passes no time.
    pub(crate) const REPORTED_AT: &str = "ReportedAt";
}

/// Fields of a study or a quarantined record.
pub(crate) mod study {
    /// Project of the search.
    pub(crate) const PROJECT: &str = "ProjectId";
    /// Search.
    pub(crate) const SEARCH: &str = "SearchId";
    /// File of the search.
    pub(crate) const FILE: &str = "FileId";
    /// Number of the record in the file, from 1.
    pub(crate) const RECORD: &str = "Record";
    /// Bibliographic data.
    pub(crate) const REFERENCE: &str = "Reference";
    /// Mark of a duplicate. The field is absent in other studies.
    pub(crate) const DUPLICATE: &str = "Duplicate";
    /// Id of the study that a duplicate repeats.
    pub(crate) const ORIGINAL: &str = "Duplicate.of";
    /// Keys that a study may share with others, as signed numbers. Studies of earlier versions lack this field.
    pub(crate) const KEYS: &str = "Keys";
}

/// Fields of a file that was read completely.
pub(crate) mod file {
    /// Index among the files of the search.
    pub(crate) const POSITION: &str = "Position";
    /// The file itself.
    pub(crate) const FILE: &str = "File";
    /// Last record whose words are indexed. The field is absent if no such value exists.
    pub(crate) const WORDS: &str = "Words";
}

/// Fields of the words of a part of a file.
pub(crate) mod word {
    /// Last record of the part.
    pub(crate) const LAST: &str = "Last";
    /// First two characters of the words.
    pub(crate) const BUCKET: &str = "Bucket";
}

/// Fields of the attempts to read a file.
pub(crate) mod attempts {
    /// Time of the last write by the server's clock, as a date for the TTL index. The port passes no time.
    pub(crate) const TOUCHED_AT: &str = "TouchedAt";
}
