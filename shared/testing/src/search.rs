//! Sample data of the search import.

use imports::messages::ObjectRef;
use imports::{
    Counts, FileId, Job, JobState, ParsedFile, ProjectId, QuarantinedRecord, ReadingStatus, SearchId, Study,
    StudyId,
};
use messages::Host;
use references::{Quarantine, Reference};
use uuid::Uuid;

use contracts::sample::now;

/// Returns a new, unused file.
pub fn file(host: &dyn Host) -> FileId {
    FileId::from_uuid(host.fresh_id())
}

/// Returns a job without files.
pub fn job(host: &dyn Host, search_id: SearchId, revision: u64, state: JobState) -> Job {
    Job {
        search_id,
        project_id: ProjectId::from_uuid(Uuid::from_u128(1)),
        name: Some(format!("revision {revision}")),
        state,
        reason: None,
        files: Vec::new(),
        repairs: None,
        created_at: now(host),
        completed_at: state.has_ended().then(|| now(host)),
        revision,
    }
}

/// Returns the study of record `record` of a file.
pub fn study(search_id: SearchId, file_id: FileId, record: u64) -> Study {
    Study {
        id: StudyId::of(search_id, file_id, record),
        project_id: ProjectId::from_uuid(Uuid::from_u128(1)),
        search_id,
        file_id,
        record,
        line: record * 10,
        bytes: Some(record * 100..record * 100 + 90),
        reference: Reference { title: format!("Study {record}: Ärzte"), ..Reference::default() },
        duplicate: None,
    }
}

/// Returns record `number` of a file as unreadable.
pub fn quarantined(search_id: SearchId, file_id: FileId, number: u64) -> QuarantinedRecord {
    let record = Quarantine {
        number,
        line: number * 10,
        bytes: 0..10,
        reason: "no title".to_owned(),
        excerpt: "TY  - ???".to_owned(),
    };
    QuarantinedRecord { search_id, file_id, record }
}

/// Returns the status at the end of a file with three records, one of them unreadable, whose studies were compared up
/// to a record.
pub fn end(compared: u64) -> ReadingStatus {
    let counts = Counts {
        format: "RIS".to_owned(),
        format_certainty: "certain".to_owned(),
        encoding: "UTF-8".to_owned(),
        encoding_certainty: "certain".to_owned(),
        records: 3,
        studies: 2,
        quarantined: 1,
        ..Counts::default()
    };
    ReadingStatus::compared(counts, compared)
}

/// Returns the status of a refused file.
pub fn refused() -> ReadingStatus {
    ReadingStatus::refused("no title", 2)
}

/// Returns a completely read file.
pub fn parsed(search_id: SearchId, file_id: FileId, position: u32) -> ParsedFile {
    let name = format!("file {position}.ris");
    let object = ObjectRef {
        bucket: "uploads".to_owned(),
        key: format!("uploads/{file_id}/{name}"),
        version: Some("v1".to_owned()),
        size_bytes: 100,
    };
    let announced_at = jiff::Timestamp::from_second(1_770_000_000).ok();
    ParsedFile { search_id, file_id, position, name, object, parts: Vec::new(), announced_at }
}
