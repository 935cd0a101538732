//! The collections, and the fields that queries and indexes use.

/// The collections.
pub mod collections {
    /// Saga documents with their outbox.
    pub const SAGA: &str = "pmSearchImportJobState";
    /// Views: sagas as their readers see them.
    pub const VIEW: &str = "pmSearchImportJob";
    /// How far files are. Not in the view: reports come while that may not be there yet, would compete with the
    /// saga for a document that is replaced as a whole, and are worth nothing once the search has ended, so they
    /// leave by a TTL index of their own. One document a search, read by its id.
    pub const PROGRESS: &str = "pmSearchImportProgress";
    /// Studies.
    pub const STUDY: &str = "pmStudy";
    /// Records that could not be read. Not among the studies: whoever reads `pmStudy` would have to know of them
    /// and leave them out.
    pub const QUARANTINE: &str = "pmStudyQuarantine";
    /// Files that were read to their end.
    pub const FILE: &str = "pmStudyFile";
    /// How often what a project holds has changed: one document a project.
    pub const PROJECT: &str = "pmProject";
    /// The attempts at reading files, and where the next one goes on. They leave by a TTL index of their own: without
    /// one a file is read from its beginning.
    pub const READING: &str = "pmStudyReading";
    /// Records of transactional sessions with their outbox.
    pub const SESSION: &str = "pmOutbox";
    /// An application's own records, which sessions read and write.
    pub const RECORD: &str = "pmRecord";

    /// What was given up.
    pub const FAILURE: &str = "pmFailure";
    /// Operations on what was given up.
    pub const OPERATION: &str = "pmFailureOperation";
    /// What somebody did about what was given up.
    pub const ACT: &str = "pmFailureAct";
    /// What was decided about each message.
    pub const HISTORY: &str = "pmSearchImportHistory";

    /// All of them.
    pub const ALL: [&str; 14] = [
        SAGA, VIEW, PROGRESS, STUDY, QUARANTINE, FILE, PROJECT, READING, SESSION, RECORD, FAILURE, OPERATION,
        ACT, HISTORY,
    ];
}

/// Fields of a record with an outbox: of a saga document and of a session's record.
pub(crate) mod record {
    /// The partition or the session.
    pub(crate) const ID: &str = "_id";
    /// Counts the writes of a saga document.
    pub(crate) const VERSION: &str = "Version";
    /// The content of a saga document.
    pub(crate) const CONTENT: &str = "Content";
    /// When a saga ended, as a date; there is no such field before.
    pub(crate) const COMPLETED_AT: &str = "CompletedAt";
    /// What became of a session.
    pub(crate) const STATE: &str = "State";
    /// When a session was committed or given up, as a date.
    pub(crate) const AT: &str = "At";
    /// The entries, an array.
    pub(crate) const OUTBOX: &str = "Outbox";
    /// When the first entry is ready; no such field when none ever is. Each write computes it anew, so that
    /// looking for what is due reads an index of only the records that wait.
    pub(crate) const READY_AT: &str = "ReadyAt";
    /// The number of entries, poisoned ones included. Only at 0 may the record expire: an effect that was not
    /// performed is never dropped.
    pub(crate) const PENDING: &str = "Pending";
}
