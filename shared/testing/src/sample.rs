//! Things to store.

use std::collections::BTreeMap;

use ::saga::state::{Ended, Import, State};
use contracts::message::{ObjectRef, UploadTimeout};
use contracts::{
    AttemptId, Body, FileId, Host, Job, JobState, Message, MessageId, ProjectId, SearchId, TimeoutId,
};
use imports::{ParsedFile, Quarantined, Study, StudyId};
use jiff::{SignedDuration, Timestamp};
use outbox::{Entry, StageError};
use references::{Quarantine, Reference};
use uuid::Uuid;
use worker::document::{Content, Persist};

/// The host's time in whole seconds, which every store keeps.
pub fn now(host: &dyn Host) -> Timestamp {
    Timestamp::from_second(host.now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A moment `seconds` later; earlier when negative.
pub fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// A search that nobody has used.
pub fn search(host: &dyn Host) -> SearchId {
    SearchId::from_uuid(host.fresh_id())
}

/// A file that nobody has used.
pub fn file(host: &dyn Host) -> FileId {
    FileId::from_uuid(host.fresh_id())
}

/// An attempt that nobody has used.
pub fn attempt(host: &dyn Host) -> AttemptId {
    AttemptId::from_uuid(host.fresh_id())
}

/// A small message of a search.
pub fn message(host: &dyn Host, search: SearchId) -> Message {
    Message {
        id: MessageId::from_uuid(host.fresh_id()),
        source: "testing".to_owned(),
        time: now(host),
        correlation_id: search,
        causation_id: None,
        token: None,
        traceparent: None,
        body: Body::UploadTimeout(UploadTimeout { timeout_id: TimeoutId::from_uuid(Uuid::nil()) }),
    }
}

/// An outbox entry with a message of its own.
///
/// # Errors
/// Never: the message is small.
pub fn entry(host: &dyn Host, search: SearchId, due_at: Timestamp) -> Result<Entry, StageError> {
    Entry::message(&message(host, search), due_at)
}

/// The content of a search whose files are expected; `name` tells one write from another.
pub fn uploading(host: &dyn Host, name: &str) -> Content {
    content(host, State::Uploading(import(host, name)))
}

/// The content of a search that ended at `at`.
pub fn ended(host: &dyn Host, at: Timestamp) -> Content {
    content(host, State::Completed(Ended { import: import(host, "ended"), at, reason: None }))
}

fn content(host: &dyn Host, state: State) -> Content {
    Content { state, processed: Vec::new(), expected: Vec::new(), attempt: attempt(host), fence: 0 }
}

fn import(host: &dyn Host, name: &str) -> Import {
    Import {
        project_id: ProjectId::from_uuid(host.fresh_id()),
        name: Some(name.to_owned()),
        expected_files: Some(1),
        announced: true,
        files: BTreeMap::new(),
        timeout: None,
        created_at: now(host),
    }
}

/// A write on top of version `loaded`.
pub fn persist(search_id: SearchId, loaded: Option<u64>, content: Content) -> Persist {
    Persist { search_id, loaded, content, add: Vec::new(), cancel: Vec::new() }
}

/// A job without files.
pub fn job(host: &dyn Host, search_id: SearchId, revision: u64, state: JobState) -> Job {
    Job {
        search_id,
        project_id: ProjectId::from_uuid(Uuid::from_u128(1)),
        name: Some(format!("revision {revision}")),
        state,
        reason: None,
        files: Vec::new(),
        created_at: now(host),
        completed_at: state.has_ended().then(|| now(host)),
        revision,
    }
}

/// The study from record `record` of a file.
pub fn study(search_id: SearchId, file_id: FileId, record: u64) -> Study {
    Study {
        id: StudyId::of(search_id, file_id, record),
        project_id: ProjectId::from_uuid(Uuid::from_u128(1)),
        search_id,
        file_id,
        record,
        line: record * 10,
        reference: Reference { title: format!("Study {record}: Ärzte"), ..Reference::default() },
        duplicate: None,
    }
}

/// Record `number` of a file, unreadable.
pub fn quarantined(search_id: SearchId, file_id: FileId, number: u64) -> Quarantined {
    let record = Quarantine {
        number,
        line: number * 10,
        bytes: 0..10,
        reason: "no title".to_owned(),
        excerpt: "TY  - ???".to_owned(),
    };
    Quarantined { search_id, file_id, record }
}

/// A file that was read to its end.
pub fn parsed(search_id: SearchId, file_id: FileId, position: u32) -> ParsedFile {
    let name = format!("file {position}.ris");
    let object = ObjectRef {
        bucket: "uploads".to_owned(),
        key: format!("uploads/{file_id}/{name}"),
        version: Some("v1".to_owned()),
        size_bytes: 100,
    };
    ParsedFile { search_id, file_id, position, name, object }
}
