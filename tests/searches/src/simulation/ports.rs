//! The application's own ports: objects, studies, progress and upload forms. Each call is atomic, as the contract
//! suites demand of an adapter; the scheduler interleaves the calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use imports::exports::{ExportContent, Pieces};
use imports::messages::{ObjectRef, ParseCommand};
use imports::objects::ObjectStream;
use imports::words::{BucketRange, UnindexedFile, WordPart};
use imports::{
    AttemptState, Candidate, CompareStudies, DuplicateCounts, ExportFolder, ExportId, ExportKey, ExportLink,
    FileFence, FileId, FileRef, FindObjects, Identity, IndexWords, KeepExports, Mark, ObjectFacts,
    ParseAttempts, ParsedFile, PreparedStudy, PresignUpload, PresignedPost, Progress, ProjectId,
    QuarantinedRecord, ReadObject, ReadProgress, ReadStudies, ReadingStatus, ReportProgress, Revision,
    SearchId, Selection, StoredFile, Study, StudyKeys, StudyRef, UploadGrant, WriteBatching, WriteStudies,
};
use messages::{Message, StoreError};
use references::{READER_VERSION, Record, Reference};
use simulation::access::short;
use simulation::{Access, Call, Scene};

use super::client::project;
use super::outside::{Outside, Quality, files_of, of_version};
use super::situations::{
    BATCH, CANCELLED, HALF_UNREADABLE, LATE_MARK, MANY_BATCHES, NO_SCAN, OVERTAKEN, READ_ON, RESTARTED,
    STREAM_BREAKS,
};

/// Looking up an object.
const OBJECTS_HEAD: Call = Call::own(0, "objects.head");
/// Reading an object.
const OBJECTS_OPEN: Call = Call::own(1, "objects.open");
/// Storing studies.
const STUDIES_STORE: Call = Call::own(2, "studies.store").late();
/// Recording the start of an attempt at a file.
const READING_BEGIN: Call = Call::own(3, "reading.begin").linearizable();
/// Recording that a file was completely read.
const STUDIES_FINISH: Call = Call::own(4, "studies.finish").late();
/// Reading the compared fields of studies. A worker that compares studies has counted a change before, so that it reads
/// the latest data.
const STUDIES_READ: Call = Call::own(5, "studies.read");
/// Marking duplicates.
const STUDIES_MARK: Call = Call::own(6, "studies.mark").late();
/// Removing the studies of a file.
const STUDIES_DISCARD: Call = Call::own(7, "studies.discard").late().rare();
/// Scanning the uploaded files.
const OBJECTS_FIND: Call = Call::own(8, "objects.find").rare();

/// Storing a checkpoint of a file.
const READING_REACH: Call = Call::own(9, "reading.reach").rare();
/// Recording the end of an attempt at a file.
const READING_PAUSE: Call = Call::own(10, "reading.pause");

/// Removing a file of a search that was cancelled.
const STUDIES_REMOVE: Call = Call::own(11, "studies.remove").late().rare();

/// Resetting a file to unread.
const STUDIES_WITHDRAW: Call = Call::own(12, "studies.withdraw").late().rare();
/// Counting a change of the project's content.
const STUDIES_REVISE: Call = Call::own(13, "studies.revise").linearizable();

/// Reading the progress of a file.
const READING_PLACE: Call = Call::own(14, "reading.place").rare();

/// Removing an object.
const OBJECTS_REMOVE: Call = Call::own(15, "objects.remove").late().rare();
/// Storing an export.
const EXPORTS_KEEP: Call = Call::own(16, "exports.keep").late().rare();

/// Reading which files were read to their end.
const STUDIES_FILES: Call = Call::own(17, "studies.files").earlier();

/// Calls before which a worker is overtaken in some schedules.
pub(super) static RACES: [Call; 2] = [READING_BEGIN, EXPORTS_KEEP];

/// All calls.
pub(super) static CALLS: [Call; 18] = [
    OBJECTS_HEAD,
    OBJECTS_OPEN,
    STUDIES_STORE,
    READING_BEGIN,
    STUDIES_FINISH,
    STUDIES_READ,
    STUDIES_MARK,
    STUDIES_DISCARD,
    OBJECTS_FIND,
    READING_REACH,
    READING_PAUSE,
    STUDIES_REMOVE,
    STUDIES_WITHDRAW,
    STUDIES_REVISE,
    READING_PLACE,
    OBJECTS_REMOVE,
    EXPORTS_KEEP,
    STUDIES_FILES,
];

/// A checkpoint is stored without the records before it.
pub(super) const PLACE_WITHOUT_STUDIES: &str = "a place is remembered before what was read is stored";
/// A reader resumes at the checkpoint of another version.
pub(super) const READER_VERSION_IGNORED: &str = "a changed reader resumes by the number of records";

/// A worker stores the studies of a file without checking its fence.
pub(super) const NO_FENCES: &str = "studies are stored under any fence";

/// The last marks win, regardless of the revision that their worker has read.
pub(super) const LAST_MARK_WINS: &str = "the last mark wins, of whichever revision";

/// A study whose keys are not yet computed has none.
pub(super) const UNMADE_KEYS_ARE_NONE: &str = "a study without keys yet is like no other";

/// An attempt that failed because a store was unavailable counts as a crash.
pub(super) const FAILURES_ARE_CRASHES: &str = "failures of stores count as crashes";

/// An attempt with another reader version clears a withdrawn file and reads it again.
pub(super) const WITHDRAWN_IS_CLEARED: &str = "a withdrawn file is cleared by `begin`";

/// A file counts as deleted before its studies are deleted.
pub(super) const DELETED_EARLY: &str = "a file counts as deleted before its studies are";

/// A parser that has stored an export does not see that the search was deleted in between.
pub(super) const EXPORT_OUTLIVES_SEARCH: &str = "an export outlives its search";

/// The deletion of a search leaves the exports of several searches.
pub(super) const SHARED_EXPORT_IS_KEPT: &str = "an export of several searches outlives one of them";

/// The list of read files comes from a secondary, whatever its worker has read or written before.
pub(super) const FILES_OF_SECONDARY: &str = "the list of files is read from a secondary";

/// The number of crashes after which a file is refused.
const MAX_CRASHES: u32 = 5;

/// The number of bytes of a long file per piece, after the first ones.
const PIECE_BYTES: usize = 40;

/// The ports of one worker.
pub(super) struct Own(pub(super) Access<Outside>);

#[async_trait]
impl ReadObject for Own {
    async fn head(
        &self,
        _: &str,
        key: &str,
        version: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError> {
        let (key, version) = (key.to_owned(), version.map(str::to_owned));
        let head = move |scene: &mut Scene<'_, Outside>| {
            let stored = scene.object(&key, version.as_deref())?;
            let (size_bytes, version) = (stored.object.size_bytes, stored.object.version.clone());
            Some(ObjectFacts { size_bytes, version, metadata: stored.metadata.clone() })
        };
        self.0.call(OBJECTS_HEAD, head).await
    }

    async fn open(&self, object: &ObjectRef, from: u64) -> Result<Option<ObjectStream>, StoreError> {
        let (object, from) = (object.clone(), usize::try_from(from).unwrap_or(usize::MAX));
        let open = move |scene: &mut Scene<'_, Outside>| {
            let Some(stored) = scene.object(&object.key, object.version.as_deref()) else { return Ok(None) };
            // Reading a poisonous file never succeeds.
            let broken = || StoreError::unavailable("reading an object", "the object cannot be read");
            let rest = stored.bytes.as_deref().ok_or_else(broken)?.get(from..).unwrap_or_default().to_vec();
            let breaks_off = scene.rng().one_in(12);
            let pieces = pieces(&rest);
            let whole = if breaks_off { pieces.len() / 2 } else { pieces.len() };
            if breaks_off && whole > 0 {
                scene.meet(STREAM_BREAKS);
            }
            if from > 0 {
                scene.meet(READ_ON);
            }
            let broken = breaks_off.then(broken).map(Err);
            Ok(Some(stream::iter(pieces.into_iter().take(whole).map(Ok).chain(broken)).boxed()))
        };
        self.0.call(OBJECTS_OPEN, open).await?
    }
}

/// Delivers the bytes in the same way as a connection: the first records together, and the others one by one.
fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (first, rest) = bytes.split_at(bytes.len().min(references::DETECTION_WINDOW));
    let mut pieces = vec![first.to_vec()];
    pieces.extend(rest.chunks(PIECE_BYTES).map(<[u8]>::to_vec));
    pieces
}

#[async_trait]
impl FindObjects for Own {
    async fn find(&self, prefix: &str) -> Result<Vec<ObjectRef>, StoreError> {
        let is_shared = prefix == ExportFolder::Review(project()).to_string();
        let sees = !self.0.has(if is_shared { SHARED_EXPORT_IS_KEPT } else { NO_SCAN });
        let prefix = prefix.to_owned();
        let find = move |scene: &mut Scene<'_, Outside>| {
            if sees { scene.found(&prefix) } else { Vec::new() }
        };
        self.0.call(OBJECTS_FIND, find).await
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        let key = key.to_owned();
        let remove = move |scene: &mut Scene<'_, Outside>| {
            scene.note(|| format!("objects.remove   {key}"));
            scene.exports.remove(&key);
            scene.stray.remove(&key);
            scene.objects.retain(|stored| stored.object.key != key);
        };
        self.0.call(OBJECTS_REMOVE, remove).await
    }
}

/// Progress is only displayed.
#[async_trait]
impl ReportProgress for Own {
    async fn report(&self, _: SearchId, _: FileId, _: Progress) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl ReadProgress for Own {
    async fn progress(&self, _: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        Ok(Vec::new())
    }
}

/// Returns `true` if an export that is stored now remains although one of its searches was deleted: no worker will handle
/// its command again, or waits for the answer of this request.
fn is_stray_export(scene: &Scene<'_, Outside>, export: ExportId) -> bool {
    let read = |message: &Message| match message.read() {
        Ok(ParseCommand::MakeExport(command)) if command.export_id == export => Some((message.id, command)),
        _ => None,
    };
    let command = scene.truth.keys().find_map(|search| {
        let command = scene.effects(*search).find_map(read);
        command.map(|(id, command)| (*search, id, command))
    });
    let Some((search, id, command)) = command else { return scene.is_stray() };
    let has = |search: SearchId, files: &BTreeSet<FileId>| {
        files.iter().all(|file| scene.files.contains_key(&FileRef::new(search, *file)))
    };
    let is_complete =
        has(search, &command.files) && command.others.iter().all(|other| has(other.search_id, &other.files));
    !is_complete && (scene.is_stray() || scene.is_done(id))
}

/// The simulated store of exports keeps only the key of an export.
#[async_trait]
impl KeepExports for Own {
    async fn keep(&self, key: &ExportKey, mut pieces: Pieces<'_>) -> Result<u64, StoreError> {
        let mut bytes = 0;
        while let Some(piece) = pieces.next().await {
            bytes += piece?.len() as u64;
        }
        let (is_removed, key, export) = (key.content == ExportContent::Removed, key.to_string(), key.export);
        let keep = move |scene: &mut Scene<'_, Outside>| {
            scene.note(|| format!("exports.keep     {key}"));
            if is_removed {
                scene.exports.insert(key);
                return;
            }
            scene.stray.remove(&key);
            // An object store has no fence. If another worker has handled the command of a worker that stood still, a
            // failure of the check that follows is not repeated.
            if is_stray_export(scene, export) {
                scene.stray.insert(key.clone());
            }
            scene.exports.insert(key);
        };
        self.0.call(EXPORTS_KEEP, keep).await?;
        Ok(bytes)
    }

    async fn link(&self, _: &ExportKey, _: &str, _: Duration) -> Result<Option<ExportLink>, StoreError> {
        Ok(None)
    }
}

/// Creating a form needs no call to a service.
#[async_trait]
impl PresignUpload for Own {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        let mut fields = grant.metadata.clone();
        fields.insert("key".to_owned(), grant.key.clone());
        Ok(PresignedPost { url: "simulated".to_owned(), fields, expires_at: grant.expires_at })
    }
}

#[async_trait]
impl ParseAttempts for Own {
    async fn start(&self, search: SearchId, file: FileId, reader: u32) -> Result<AttemptState, StoreError> {
        let (ignores_versions, clears) =
            (self.0.has(READER_VERSION_IGNORED), self.0.has(WITHDRAWN_IS_CLEARED));
        let begin = move |scene: &mut Scene<'_, Outside>| {
            // A version with another reader, which returns different records, may be deployed while the earlier one
            // still works.
            if scene.rng().one_in(4) {
                scene.change_reader(search, file);
            }
            let (last, by) =
                scene.readings.entry(FileRef::new(search, file)).or_insert((AttemptState::default(), reader));
            let held = FileFence { search_id: search, file_id: file, fence: last.fence };
            let is_another = *by != reader && !ignores_versions;
            *by = reader;
            if is_another && clears {
                scene.readings.entry(FileRef::new(search, file)).and_modify(|(last, _)| {
                    last.place.take_if(|place| matches!(place, ReadingStatus::Refused { .. }));
                });
            }
            if is_another && let Some(gone) = scene.discard(&held, None) {
                scene.meet(RESTARTED);
                scene.note(|| format!("reading.begin    file {}: {gone} studies go", short(&file)));
                if let Some((last, _)) = scene.readings.get_mut(&FileRef::new(search, file)) {
                    last.begun = 0;
                }
            }
            let (last, _) =
                scene.readings.entry(FileRef::new(search, file)).or_insert((AttemptState::default(), reader));
            let mut before = last.clone();
            last.begun += 1;
            let unfinished = scene.unfinished.entry(FileRef::new(search, file)).or_default();
            *unfinished += 1;
            if *unfinished > MAX_CRASHES {
                scene.crashed.insert(FileRef::new(search, file));
            }
            let place = before.place.clone();
            scene.begun_at.insert(FileRef::new(search, file), place);
            scene.held.remove(&FileRef::new(search, file));
            if ignores_versions && let Some(place) = &mut before.place {
                of_version(place, READER_VERSION);
            }
            scene.note(|| format!("reading.begin    file {}: {} before", short(&file), before.begun));
            before
        };
        self.0.call(READING_BEGIN, begin).await
    }

    async fn save(&self, held: &FileFence, place: &ReadingStatus) -> Result<(), StoreError> {
        let (place, held, holds_back) = (place.clone(), *held, self.0.has(PLACE_WITHOUT_STUDIES));
        let FileFence { search_id: search, file_id: file, .. } = held;
        let ignores_fences = self.0.has(NO_FENCES);
        let reach = move |scene: &mut Scene<'_, Outside>| {
            scene.note(|| format!("reading.reach    file {}", short(&file)));
            if !ignores_fences && !scene.holds(&held) {
                scene.meet(OVERTAKEN);
                return Err(FileFence::overtaken("remembering a place"));
            }
            let Some((reading, _)) = scene.readings.get_mut(&FileRef::new(search, file)) else {
                return Ok(());
            };
            let has_ended = reading.place.as_ref().is_some_and(ReadingStatus::is_final);
            if (place.is_final() || !has_ended) && reading.place.as_ref() != Some(&place) {
                (reading.begun, reading.place) = (reading.begun.min(1), Some(place));
                let unfinished = scene.unfinished.entry(FileRef::new(search, file)).or_default();
                *unfinished = (*unfinished).min(1);
            }
            if holds_back && let Some(studies) = scene.studies.get_mut(&FileRef::new(search, file)) {
                let last = studies.pop_last();
                scene.held.extend(last.map(|last| (FileRef::new(search, file), last)));
            }
            Ok(())
        };
        self.0.call(READING_REACH, reach).await?
    }

    async fn place(&self, search: SearchId, file: FileId) -> Result<Option<ReadingStatus>, StoreError> {
        let place = move |scene: &mut Scene<'_, Outside>| scene.place(search, file);
        self.0.call(READING_PLACE, place).await
    }

    async fn end(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let counts_failures = self.0.has(FAILURES_ARE_CRASHES);
        let pause = move |scene: &mut Scene<'_, Outside>| {
            scene.held.remove(&FileRef::new(search, file));
            scene.unfinished.remove(&FileRef::new(search, file));
            let place = scene.readings.get(&FileRef::new(search, file)).map(|(reading, _)| &reading.place);
            if counts_failures && place == scene.begun_at.get(&FileRef::new(search, file)) {
                return;
            }
            if let Some((reading, _)) = scene.readings.get_mut(&FileRef::new(search, file)) {
                reading.begun = 0;
            }
        };
        self.0.call(READING_PAUSE, pause).await
    }
}

#[async_trait]
impl WriteStudies for Own {
    fn batching(&self) -> WriteBatching {
        WriteBatching { records: BATCH, calls: 2 }
    }

    fn prepare(&self, study: Study) -> Result<PreparedStudy, StoreError> {
        Ok(PreparedStudy::new(study))
    }

    async fn store_prepared(
        &self,
        held: &FileFence,
        studies: Vec<PreparedStudy>,
        _: Vec<QuarantinedRecord>,
    ) -> Result<(), StoreError> {
        let studies = studies.into_iter().map(PreparedStudy::into_inner).collect::<Result<_, _>>()?;
        let (held, ignores_fences) = (*held, self.0.has(NO_FENCES));
        let store = move |scene: &mut Scene<'_, Outside>| {
            if !ignores_fences && !scene.holds(&held) {
                scene.meet(OVERTAKEN);
                return Err(FileFence::overtaken("storing studies"));
            }
            scene.store(studies);
            Ok(())
        };
        self.0.call(STUDIES_STORE, store).await?
    }

    async fn discard(&self, held: &FileFence, then: Option<&ReadingStatus>) -> Result<FileFence, StoreError> {
        let (held, then, ignores_fences) = (*held, then.cloned(), self.0.has(NO_FENCES));
        let FileFence { search_id: search, file_id: file, .. } = held;
        let discard = move |scene: &mut Scene<'_, Outside>| {
            let found = match scene.discard(&held, then) {
                Some(found) => found,
                None if ignores_fences => {
                    scene.studies.remove(&FileRef::new(search, file)).map_or(0, |studies| studies.len())
                }
                None => {
                    scene.meet(OVERTAKEN);
                    return Err(FileFence::overtaken("discarding a file"));
                }
            };
            let half = scene.truth.get(&search).and_then(|truth| truth.files.get(&file));
            if found > 0 && half == Some(&Quality::HalfReadable) {
                scene.meet(HALF_UNREADABLE);
            }
            scene.note(|| format!("studies.discard  file {} of {}: {found}", short(&file), short(&search)));
            Ok(FileFence { fence: held.fence + 1, ..held })
        };
        self.0.call(STUDIES_DISCARD, discard).await?
    }

    async fn remove(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let refused = match self.0.has(DELETED_EARLY) {
            true => {
                ReadingStatus::Refused { reason: String::new(), reply: 0, compared: i64::MAX.unsigned_abs() }
            }
            false => refused.clone(),
        };
        // Stores record the status in a transaction of its own, and then delete the studies.
        self.withdraw(search, file, &refused).await?;
        let remove = move |scene: &mut Scene<'_, Outside>| {
            let gone = scene.remove(search, file, refused);
            scene.left.remove(&FileRef::new(search, file));
            scene.meet(CANCELLED);
            scene.note(|| format!("studies.remove   file {} of {}: {gone}", short(&file), short(&search)));
        };
        self.0.call(STUDIES_REMOVE, remove).await
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        let file = file.clone();
        let finish = move |scene: &mut Scene<'_, Outside>| {
            scene.store_delayed_study(file.search_id, file.file_id);
            if scene.is_refused(file.search_id, file.file_id) {
                return;
            }
            let studies = scene.studies.get(&FileRef::new(file.search_id, file.file_id));
            if studies.is_some_and(|studies| studies.len() > 2 * BATCH) {
                scene.meet(MANY_BATCHES);
            }
            scene.keep_files();
            scene.files.entry(FileRef::new(file.search_id, file.file_id)).or_insert(file);
        };
        self.0.call(STUDIES_FINISH, finish).await
    }

    async fn withdraw(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let refused = refused.clone();
        let withdraw = move |scene: &mut Scene<'_, Outside>| {
            scene.withdraw(search, file, refused);
            scene.note(|| format!("studies.withdraw file {} of {}", short(&file), short(&search)));
        };
        self.0.call(STUDIES_WITHDRAW, withdraw).await
    }
}

#[async_trait]
impl CompareStudies for Own {
    /// The simulation has a single project.
    async fn revise(&self, _: ProjectId) -> Result<Revision, StoreError> {
        let revise = |scene: &mut Scene<'_, Outside>| {
            scene.revision += 1;
            scene.revision
        };
        self.0.call(STUDIES_REVISE, revise).await
    }

    async fn sharing(&self, _: ProjectId, keys: &[u64], limit: usize) -> Result<Vec<Candidate>, StoreError> {
        let keys = keys.to_vec();
        let find = move |scene: &mut Scene<'_, Outside>| {
            let mut found = Vec::new();
            for key in keys {
                let of_key = scene.keyed.iter().skip_while(|(known, _)| *known < key);
                let of_key = of_key.take_while(|(known, _)| *known == key).map(|(_, at)| *at);
                let there = of_key.filter(|at| scene.study(*at).is_some()).take(limit);
                found.extend(there.map(|at| Candidate { key, at }));
            }
            found
        };
        self.0.call(STUDIES_READ, find).await
    }

    async fn mark(&self, revision: Revision, marks: &[Mark]) -> Result<(), StoreError> {
        let marks = marks.to_vec();
        let last_wins = self.0.has(LAST_MARK_WINS);
        let mark = move |scene: &mut Scene<'_, Outside>| {
            for Mark { at, duplicate } in marks {
                let is_later = scene.marks.get(&at).is_some_and(|(by, _)| *by > revision);
                if is_later {
                    scene.meet(LATE_MARK);
                }
                if scene.study(at).is_some() && (!is_later || last_wins) {
                    scene.marks.insert(at, (revision, duplicate));
                }
            }
        };
        self.0.call(STUDIES_MARK, mark).await
    }
}

#[async_trait]
impl ReadStudies for Own {
    /// Returns the study that a reviewer reads. Exports receive no studies, because their content is not checked.
    async fn select(&self, search: SearchId, file: FileId, of: Selection) -> Result<Vec<Study>, StoreError> {
        let records: Vec<u64> = self.0.with(|scene| {
            let known = scene.studies.get(&FileRef::new(search, file)).filter(|_| of.limit == 1);
            let records = known.into_iter().flat_map(|known| known.range(of.after + 1..));
            records.map(|(record, _)| *record).take(1).collect()
        });
        let study = |number| {
            let record = Record { number, line: 1, bytes: 0..0, reference: Reference::default() };
            Study::of(project(), search, file, record)
        };
        Ok(records.into_iter().map(study).collect())
    }

    /// No file has quarantined records.
    async fn quarantined(
        &self,
        _: SearchId,
        _: FileId,
        _: u64,
        _: usize,
    ) -> Result<Vec<QuarantinedRecord>, StoreError> {
        Ok(Vec::new())
    }

    async fn keyed(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StudyKeys>, StoreError> {
        let are_none = self.0.has(UNMADE_KEYS_ARE_NONE);
        let read = move |scene: &mut Scene<'_, Outside>| {
            let Some(known) = scene.studies.get(&FileRef::new(search, file)) else { return Vec::new() };
            let page = known.range(after + 1..).map(|(_, study)| study).take(limit);
            let keyed = |study| {
                let Identity { record, fields, is_marked } = scene.with_mark(search, file, study);
                // The keys of some studies are not yet computed, as for studies of an earlier version.
                let are_made = !file.as_uuid().as_u128().is_multiple_of(3);
                let keys = if are_made { Some(fields.keys()) } else { are_none.then(Vec::new) };
                StudyKeys { record, keys, is_marked }
            };
            page.map(keyed).collect()
        };
        self.0.call(STUDIES_READ, read).await
    }

    async fn identities_of(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
    ) -> Result<Vec<Identity>, StoreError> {
        let records = records.to_vec();
        let read = move |scene: &mut Scene<'_, Outside>| {
            let known = scene.studies.get(&FileRef::new(search, file));
            let found = records.iter().filter_map(|record| known?.get(record));
            found.map(|study| scene.with_mark(search, file, study)).collect()
        };
        self.0.call(STUDIES_READ, read).await
    }

    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError> {
        let believes = self.0.has(EXPORT_OUTLIVES_SEARCH);
        let reads_secondary = self.0.has(FILES_OF_SECONDARY);
        let read = move |scene: &mut Scene<'_, Outside>, is_stale| {
            let is_stale = is_stale || reads_secondary && scene.rng().one_in(3);
            let earlier = scene.earlier_files.len();
            let place = (is_stale && earlier > 0).then(|| scene.rng().index(earlier));
            let files = match place.and_then(|place| scene.earlier_files.get(place)) {
                Some(earlier) => files_of(earlier, search),
                None => files_of(&scene.files, search),
            };
            // The defect keeps all files.
            let known = scene.listed.entry(search).or_default();
            if files.len() >= known.len() {
                known.clone_from(&files);
            }
            if believes { known.clone() } else { files }
        };
        self.0.read(STUDIES_FILES, read).await
    }

    async fn stored_files(
        &self,
        after: Option<FileRef>,
        limit: usize,
    ) -> Result<Vec<StoredFile>, StoreError> {
        let read = move |scene: &mut Scene<'_, Outside>| {
            let following = scene.studies.iter().filter(|(file, _)| Some(**file) > after);
            let stored = following.filter(|(_, studies)| !studies.is_empty()).take(limit);
            let stored_file = |(&FileRef { search_id, file_id }, studies): (&FileRef, &BTreeMap<_, _>)| {
                StoredFile { search_id, file_id, project_id: project(), studies: studies.len() as u64 }
            };
            stored.map(stored_file).collect()
        };
        self.0.call(STUDIES_READ, read).await
    }

    async fn marked(&self, _: SearchId, _: FileId) -> Result<DuplicateCounts, StoreError> {
        Ok(DuplicateCounts::default())
    }

    async fn studies_at(
        &self,
        _: SearchId,
        _: FileId,
        _: &[u64],
        _: usize,
    ) -> Result<Vec<Study>, StoreError> {
        Ok(Vec::new())
    }

    async fn repeating(
        &self,
        _: SearchId,
        _: FileId,
        _: &[u64],
        _: usize,
    ) -> Result<Vec<(u64, StudyRef)>, StoreError> {
        Ok(Vec::new())
    }

    async fn words(
        &self,
        _: SearchId,
        _: FileId,
        _: u64,
        _: &[BucketRange],
    ) -> Result<Option<WordPart>, StoreError> {
        Ok(None)
    }
}

/// The simulation has no searches for words.
#[async_trait]
impl IndexWords for Own {
    async fn unindexed(&self, _: Option<FileRef>, _: usize) -> Result<Vec<UnindexedFile>, StoreError> {
        Ok(Vec::new())
    }

    async fn store_words(&self, _: SearchId, _: FileId, _: WordPart) -> Result<bool, StoreError> {
        Ok(false)
    }
}
