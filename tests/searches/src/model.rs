//! One search of two files, for the model of the delivery protocol.

use ::model::{Budget, Check, Property, Protocol, always, input, reply, report, sometimes};
use imports::messages::{
    ObjectRef, ReferenceFileParsingCompleted, SearchUploadSaved, SearchUploadStarted, StartParsingFaulted,
    UploadsFound,
};
use imports::{
    Counts, FileId, Manifest, ManifestFile, ParseCommand, ProjectId, SearchEvent, SearchImport,
    UploadMetadata,
};
use messages::Message;
use uuid::Uuid;

/// The number of files of the search.
pub const FILES: u32 = 2;

/// The search, announced by its manifest or known only from its files.
pub fn protocol(announced: bool, budget: Budget) -> Protocol<SearchImport> {
    let files = (0..FILES).map(|n| input(1 + n, &saved(n)));
    let inputs = announced.then(|| input(0, &started())).into_iter().chain(files).collect();
    Protocol { saga: SearchImport::default(), inputs, replies, budget }
}

/// The invariants of a search in addition to those of all sagas.
pub fn properties() -> Vec<Property<Check<SearchImport>>> {
    vec![
        always("there is one parse command for each file, and one look for each timeout", |check, system| {
            system.requests() <= FILES as usize + usize::from(check.budget().timers)
        }),
        always("a search that is at rest has ended", |_, system| {
            !system.is_at_rest() || system.has_ended() || system.has_expired()
        }),
        sometimes("a search completes", |_, system| {
            system.state().is_some_and(|state| state.name() == "Completed")
        }),
    ]
}

fn id(n: u32) -> Uuid {
    Uuid::from_u128(u128::from(n))
}

fn project() -> ProjectId {
    ProjectId::from_uuid(id(2))
}

fn file(n: u32) -> FileId {
    FileId::from_uuid(id(100 + n))
}

fn started() -> SearchEvent {
    let files =
        (0..FILES).map(|n| ManifestFile { file_id: file(n), name: format!("{n}.ris"), size_bytes: 1 });
    let manifest = Manifest { name: "search".into(), files: files.collect(), repairs: None };
    SearchEvent::SearchUploadStarted(SearchUploadStarted { project_id: project(), manifest })
}

fn saved(n: u32) -> SearchEvent {
    SearchEvent::SearchUploadSaved(stored(n))
}

fn stored(n: u32) -> SearchUploadSaved {
    let metadata = UploadMetadata { search_name: "search".into(), expected_files: FILES as usize };
    SearchUploadSaved {
        project_id: project(),
        file_id: file(n),
        file_name: format!("{n}.ris"),
        object: ObjectRef { bucket: "b".into(), key: n.to_string(), version: None, size_bytes: 1 },
        metadata: metadata.to_map(),
    }
}

/// The parser's reply to a command, and the report of a dead-lettered command; a bucket scan finds the first file. The
/// end of the import is reported to other systems.
fn replies(message: &Message) -> Vec<Message> {
    let parse = match message.read() {
        Ok(ParseCommand::StartParsing(parse)) => parse,
        Ok(ParseCommand::LookForUploads(look)) => {
            let found = UploadsFound { look_id: look.look_id, files: vec![stored(0)] };
            return vec![reply(message, &SearchEvent::UploadsFound(found))];
        }
        // No reply is sent.
        Ok(
            ParseCommand::TakeBackFiles(_) | ParseCommand::MakeExport(_) | ParseCommand::CompareStudies(_),
        )
        | Err(_) => return Vec::new(),
    };
    let counts = Counts {
        format: "RIS".into(),
        encoding: "UTF-8".into(),
        records: 1,
        studies: 1,
        ..Counts::default()
    };
    let completed = ReferenceFileParsingCompleted { file_id: parse.file_id, counts };
    let faulted = StartParsingFaulted { file_id: parse.file_id, reason: "it could not be read".into() };
    vec![
        reply(message, &SearchEvent::ReferenceFileParsingCompleted(completed)),
        report(message, &SearchEvent::StartParsingFaulted(faulted)),
    ]
}
