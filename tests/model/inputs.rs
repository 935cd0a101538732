//! The messages of a search with two files, as the entry points send them.

use contracts::job::Counts;
use contracts::message::{
    ObjectRef, ReferenceFileParsingCompleted, SearchUploadSaved, SearchUploadStarted, StartParsing,
};
use contracts::{
    Body, FileId, Manifest, ManifestFile, Message, MessageId, ProjectId, SearchId, Token, UploadMetadata,
};
use jiff::Timestamp;
use uuid::Uuid;

/// How many files the search has.
pub(crate) const FILES: u128 = 2;

/// The one moment at which everything happens; leases run out by a step of the model, not by the clock.
pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// The search.
pub(crate) fn search() -> SearchId {
    SearchId::from_uuid(id(1))
}

fn project() -> ProjectId {
    ProjectId::from_uuid(id(2))
}

fn file(n: u128) -> FileId {
    FileId::from_uuid(id(100 + n))
}

fn message(n: u128, body: Body) -> Message {
    Message {
        id: MessageId::from_uuid(id(200 + n)),
        source: "model".into(),
        time: NOW,
        correlation_id: search(),
        causation_id: None,
        token: Some(Token::minted_at_entry(search(), id(300 + n))),
        traceparent: None,
        body,
    }
}

/// The announcement, if there is one, and one stored file after the other.
pub(crate) fn messages(announced: bool) -> Vec<Message> {
    let files =
        (0..FILES).map(|n| ManifestFile { file_id: file(n), name: format!("{n}.ris"), size_bytes: 1 });
    let manifest = Manifest { name: "search".into(), files: files.collect() };
    let started = Body::SearchUploadStarted(SearchUploadStarted { project_id: project(), manifest });
    let mut all = if announced { vec![message(0, started)] } else { Vec::new() };
    all.extend((0..FILES).map(|n| message(1 + n, saved(n))));
    all
}

fn saved(n: u128) -> Body {
    let metadata = UploadMetadata { search_name: "search".into(), expected_files: FILES as usize };
    Body::SearchUploadSaved(SearchUploadSaved {
        project_id: project(),
        file_id: file(n),
        file_name: format!("{n}.ris"),
        object: ObjectRef { bucket: "b".into(), key: n.to_string(), version: None, size_bytes: 1 },
        metadata: metadata.to_map(),
    })
}

/// What the parser answers to a command.
pub(crate) fn reply(command: &Message, parse: &StartParsing) -> Message {
    let counts = Counts {
        format: "RIS".into(),
        encoding: "UTF-8".into(),
        records: 1,
        studies: 1,
        ..Counts::default()
    };
    let body = ReferenceFileParsingCompleted { file_id: parse.file_id, counts };
    Message {
        id: command.id.derive(0),
        source: "parse-references".into(),
        time: NOW,
        correlation_id: search(),
        causation_id: Some(command.id),
        token: parse.reply_token.clone(),
        traceparent: None,
        body: Body::ReferenceFileParsingCompleted(body),
    }
}
