//! Names of the collections, and of the fields that queries and indexes use. These names are stored, so they must not
//! change.

/// Collections of the engine, by their names in the database of the search import. The names of other systems are
/// derived from the name of the system, see [`collection_name`].
pub(crate) mod collections {
    /// Saga documents with their outbox.
    pub const SAGA: &str = "pmSearchImportJobState";
    /// Views of the sagas for readers.
    pub const VIEW: &str = "pmSearchImportJob";
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

    /// All collections of the engine.
    pub const ENGINE: [&str; 8] = [SAGA, VIEW, SESSION, RECORD, FAILURE, OPERATION, ACT, HISTORY];
}

/// The system whose collections have the names of [`collections`], because they are older than this naming rule.
pub(crate) const SEARCH_IMPORT: &str = "search-import";

/// Returns the name of an engine's collection in the database of a system, such as `orders_sagas` for
/// [`collections::SAGA`] of `orders`. Several systems can therefore share a database. Other names are returned
/// unchanged.
pub fn collection_name(system: &str, collection: &str) -> String {
    let content = match collection {
        _ if system == SEARCH_IMPORT => return collection.to_owned(),
        collections::SAGA => "sagas",
        collections::VIEW => "views",
        collections::SESSION => "sessions",
        collections::RECORD => "records",
        collections::FAILURE => "failures",
        collections::OPERATION => "failure_operations",
        collections::ACT => "failure_audit",
        collections::HISTORY => "decisions",
        other => return other.to_owned(),
    };
    format!("{}_{content}", messages::naming::snake(system))
}

/// Fields of a record with an outbox: a saga document or the record of a session.
pub(crate) mod record {
    /// Partition or session.
    pub(crate) const ID: &str = "_id";
    /// Number of writes of a saga document.
    pub(crate) const VERSION: &str = "Version";
    /// Content of a saga document.
    pub(crate) const CONTENT: &str = "Content";
    /// End of a saga, as a date. The field is absent before the end.
    pub(crate) const COMPLETED_AT: &str = "CompletedAt";
    /// State of a session.
    pub(crate) const STATE: &str = "State";
    /// Time at which a session was committed or abandoned, as a date.
    pub(crate) const AT: &str = "At";
    /// Outbox entries, an array.
    pub(crate) const OUTBOX: &str = "Outbox";
    /// Time at which the first entry is ready; absent if no entry will be. Each write computes it again, so that a
    /// sweep for due entries reads an index of the waiting records only.
    pub(crate) const READY_AT: &str = "ReadyAt";
    /// Number of entries, including exhausted ones. The record may only expire at 0, so that no pending effect is lost.
    pub(crate) const PENDING: &str = "Pending";
}

/// Fields of a view.
pub(crate) mod view {
    /// `true` if the view is final. The index of unfinished views contains only those with `false`.
    pub(crate) const ENDED: &str = "Ended";
    /// List that contains the view.
    pub(crate) const LIST: &str = "ProjectId";
    /// Further lists that contain the view, an array. The field is absent if the list is empty.
    pub(crate) const FURTHER_LISTS: &str = "AlsoIn";
    /// Creation time in nanoseconds, which determines the order.
    pub(crate) const CREATED_AT: &str = "CreatedAt";
    /// List whose readers are notified of changes.
    pub(crate) const CHANGED_IN: &str = "ChangedIn";
    /// Time of the last write by the cluster's clock, which never goes back, neither at an election nor when the clock
    /// of a server does. The field is absent in views of earlier versions.
    pub(crate) const CHANGED_AT: &str = "ChangedAt";
}

/// Fields of records of applications.
pub(crate) mod application {
    /// Date from which the record counts as absent. The field is absent if the record does not expire.
    pub(crate) const EXPIRES_AT: &str = "ExpiresAt";
}

/// Fields of failures, operations and audit entries.
pub(crate) mod failure {
    /// Status of a failure.
    pub(crate) const STATUS: &str = "State";
    /// Fingerprint of the cause.
    pub(crate) const CAUSE: &str = "Cause";
    /// Time of the last occurrence in nanoseconds.
    pub(crate) const LAST_SEEN: &str = "LastSeen";
    /// Expiry date for the TTL index. The field is absent while an operator has to act.
    pub(crate) const EXPIRES_AT: &str = "ExpiresAt";
    /// `true` if an operation is running. A unique index of the running operations allows only one.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_search_import_do_not_change() {
        for collection in collections::ENGINE {
            assert_eq!(collection_name("search-import", collection), collection);
        }
    }

    #[test]
    fn names_of_other_systems_derive_from_system() {
        let names = collections::ENGINE.map(|collection| collection_name("fresh-orders", collection));
        assert_eq!(names[0], "fresh_orders_sagas");
        assert!(names.iter().all(|name| name.starts_with("fresh_orders_")), "{names:?}");
        assert_eq!(BTreeSet::from(names).len(), collections::ENGINE.len());
    }
}
