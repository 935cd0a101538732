//! Names of the collections, and of the fields that queries and indexes use. They are stored and do not change.

/// Names of the collections.
pub mod collections {
    /// Saga documents with their outbox.
    pub const SAGA: &str = "pmSearchImportJobState";
    /// Views of the sagas for readers.
    pub const VIEW: &str = "pmSearchImportJob";
    /// Progress of reading files: one document per search, read by its id. It is not part of the view, because reports
    /// may arrive before the view exists and would compete with the saga for a document that is replaced as a whole.
    /// Progress has no value after the end of the search, so a TTL index deletes it.
    pub const PROGRESS: &str = "pmSearchImportProgress";
    /// Studies.
    pub const STUDY: &str = "pmStudy";
    /// Records that could not be read. They are separate from the studies, so that readers of `pmStudy` need not
    /// exclude them.
    pub const QUARANTINE: &str = "pmStudyQuarantine";
    /// Files that were read completely.
    pub const FILE: &str = "pmStudyFile";
    /// Revisions of the projects' studies: one document per project.
    pub const PROJECT: &str = "pmProject";
    /// Attempts to read files, and their checkpoints. A TTL index deletes them; a file without a document is read from
    /// its beginning.
    pub const READING: &str = "pmStudyReading";
    /// Records of transactional sessions with their outbox.
    pub const SESSION: &str = "pmOutbox";
    /// Records of applications, which sessions read and write.
    pub const RECORD: &str = "pmRecord";

    /// Failures: dead-lettered messages and exhausted effects.
    pub const FAILURE: &str = "pmFailure";
    /// Operations on failures.
    pub const OPERATION: &str = "pmFailureOperation";
    /// Audit log of the operators' actions on failures.
    pub const ACT: &str = "pmFailureAct";
    /// Decisions about each message.
    pub const HISTORY: &str = "pmSearchImportHistory";

    /// All collections.
    pub const ALL: [&str; 14] = [
        SAGA, VIEW, PROGRESS, STUDY, QUARANTINE, FILE, PROJECT, READING, SESSION, RECORD, FAILURE, OPERATION,
        ACT, HISTORY,
    ];
}

/// Fields of a record with an outbox: a saga document or the record of a session.
pub(crate) mod record {
    /// Partition or session.
    pub(crate) const ID: &str = "_id";
    /// Number of writes of a saga document.
    pub(crate) const VERSION: &str = "Version";
    /// Content of a saga document.
    pub(crate) const CONTENT: &str = "Content";
    /// End of a saga, as a date. Absent before the end.
    pub(crate) const COMPLETED_AT: &str = "CompletedAt";
    /// State of a session.
    pub(crate) const STATE: &str = "State";
    /// Time at which a session was committed or abandoned, as a date.
    pub(crate) const AT: &str = "At";
    /// Outbox entries, an array.
    pub(crate) const OUTBOX: &str = "Outbox";
    /// Time at which the first entry is ready; absent if no entry will be. Each write computes it again, so that a sweep
    /// for due entries reads an index of the waiting records only.
    pub(crate) const READY_AT: &str = "ReadyAt";
    /// Number of entries, including poisoned ones. The record may only expire at 0, so that no pending effect is lost.
    pub(crate) const PENDING: &str = "Pending";
}

/// Fields of a view.
pub(crate) mod view {
    /// Whether the view is final. The index of unfinished views contains only those with `false`.
    pub(crate) const ENDED: &str = "Ended";
    /// List that contains the view.
    pub(crate) const LIST: &str = "ProjectId";
    /// Creation time in nanoseconds, which determines the order.
    pub(crate) const CREATED_AT: &str = "CreatedAt";
    /// List whose readers are notified of changes.
    pub(crate) const CHANGED_IN: &str = "ChangedIn";
    /// Time of the last write by the cluster's clock, which never goes back, neither at an election nor when the clock
    /// of a server does. Absent in views of earlier versions.
    pub(crate) const CHANGED_AT: &str = "ChangedAt";
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
    /// Mark of a duplicate. Absent in other studies.
    pub(crate) const DUPLICATE: &str = "Duplicate";
    /// Keys that a study may share with others, as signed numbers. Absent in studies of earlier versions.
    pub(crate) const KEYS: &str = "Keys";
}

/// Fields of a file that was read completely.
pub(crate) mod file {
    /// Index among the files of the search.
    pub(crate) const POSITION: &str = "Position";
}

/// Fields of the attempts to read a file.
pub(crate) mod attempts {
    /// Time of the last write by the server's clock, as a date for the TTL index. The port passes no time.
    pub(crate) const TOUCHED_AT: &str = "TouchedAt";
}

/// Fields of failures, operations and audit entries.
pub(crate) mod failure {
    /// Status of a failure.
    pub(crate) const STATUS: &str = "State";
    /// Fingerprint of the cause.
    pub(crate) const CAUSE: &str = "Cause";
    /// Time of the last occurrence in nanoseconds.
    pub(crate) const LAST_SEEN: &str = "LastSeen";
    /// Expiry date for the TTL index. Absent while an operator has to act.
    pub(crate) const EXPIRES_AT: &str = "ExpiresAt";
    /// Whether an operation is running. A unique index of the running operations allows only one.
    pub(crate) const RUNNING: &str = "Running";
    /// Start of an operation or time of an action, in nanoseconds.
    pub(crate) const AT: &str = "At";
}

/// Fields of a decision about a message.
pub(crate) mod history {
    /// Partition; null if the message does not contain it.
    pub(crate) const PARTITION: &str = "Partition";
    /// Time of the decision in nanoseconds.
    pub(crate) const AT: &str = "At";
    /// Expiry date for the TTL index.
    pub(crate) const EXPIRES_AT: &str = "ExpiresAt";
}
