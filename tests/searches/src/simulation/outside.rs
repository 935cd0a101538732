//! The state that outlives the workers in addition to the engine's stores: objects, studies, and the truth about them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;
use std::time::Duration;

use imports::messages::ObjectRef;
use imports::queues::UPLOADS;
use imports::{
    AttemptState, Duplicate, ExportFolder, ExportId, FileFence, FileId, FileRef, Identity, ObjectKey,
    ParsedFile, ProjectId, ReadingStatus, Revision, SearchId, Study, StudyRef, UploadMetadata,
};
use jiff::Timestamp;
use messages::MessageId;
use service::NewSearch;
use simulation::Scene;
use simulation::access::short;

use super::situations::KEY_PREFIX;

/// The bucket of uploads.
const BUCKET: &str = "bucket";

const TWO_RECORDS: &[u8] = b"TY  - JOUR\nTI  - A\nDO  - 10.5555/a\nER  - \nTY  - JOUR\nTI  - B\nER  - \n";
/// The number of records of a long file after its first record, which fills the window for the detection of the format.
const SHORT_RECORDS: usize = 8;
static LONG: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut file =
        format!("TY  - JOUR\nTI  - L\nAB  - {}\nER  - \n", "x".repeat(references::DETECTION_WINDOW));
    for n in 0..SHORT_RECORDS {
        file.push_str(&format!("TY  - JOUR\nTI  - L{n}\nER  - \n"));
    }
    file.into_bytes()
});
/// A long file that is refused when its end is reached.
static HALF_READABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let unreadable = "TY  - JOUR\nER  - \n".repeat(2 * SHORT_RECORDS);
    [LONG.as_slice(), unreadable.as_bytes()].concat()
});
const NO_RECORD: &[u8] = b"no reference at all";

/// The maximum delay of a notification, which exceeds the time that a search waits for its files.
const HOUR_MS: u64 = 3_600_000;

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// Two records.
    Good,
    /// Many records, read in many pieces.
    Long,
    /// A file in which some records can be read, and more cannot.
    HalfReadable,
    /// A file without readable content.
    Bad,
    /// A file that every attempt fails to read.
    Unreadable,
}

/// The maximum number of files of a keyed request.
pub(super) const MAX_KEYED_FILES: usize = 2;

/// The answer to a keyed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyedAnswer {
    /// This search is announced.
    Announced(SearchId),
    /// This search was announced, and ended before all of its files arrived.
    Ended(SearchId),
    /// The key belongs to a different request.
    Differs,
    /// The key belongs to a request that is not stored.
    Unknown,
}

/// The true history of a search.
#[derive(Debug, Clone, Default)]
pub struct Truth {
    /// The files known to a client.
    pub files: BTreeMap<FileId, Quality>,
    /// The files that are put into the bucket by hand.
    pub by_hand: BTreeSet<FileId>,
    /// `true` if the search was requested with a key, so that the first request determines its files.
    pub is_keyed: bool,
    /// The number of past and future notifications of stored objects.
    pub notified: usize,
    /// For each file, the times at which it was stored, and the number of files of the request whose form was used.
    pub stored: BTreeMap<FileId, Vec<(Timestamp, Option<usize>)>>,
    /// `true` if the client received the confirmation of the announcement.
    pub announced: bool,
    /// The maximum number of the search's files, if it repairs another search.
    pub repairs: Option<usize>,
    /// `true` if the client requested the withdrawal of the search.
    pub withdrawn: bool,
    /// `true` if the client requested the deletion of the search.
    pub deleted: bool,
}

/// An export that a client was promised.
#[derive(Debug, Clone)]
pub struct PromisedExport {
    /// The search that the client named.
    pub search: SearchId,
    /// The files of the export.
    pub files: BTreeSet<FileRef>,
    /// `true` if the files belong to several searches. The deletion of any search of the project then removes the export,
    /// and leaves an object that says so.
    pub is_shared: bool,
}

/// An uploaded object.
#[derive(Debug, Clone)]
pub struct StoredObject {
    /// The location of the object.
    pub object: ObjectRef,
    /// The user metadata of the object.
    pub metadata: BTreeMap<String, String>,
    /// The time at which the object was stored.
    pub stored_at: Timestamp,
    /// The content of the object; `None` if it cannot be read.
    pub bytes: Option<Cow<'static, [u8]>>,
}

impl Truth {
    /// Returns the time at which a file was first stored, by any form.
    pub fn first_stored(&self, file: FileId) -> Option<Timestamp> {
        self.stored.get(&file)?.iter().map(|(at, _)| *at).min()
    }

    /// Returns `true` if a file was stored by a form of a request for this number of files.
    pub fn was_stored_for(&self, file: FileId, count: Option<usize>) -> bool {
        self.stored.get(&file).is_some_and(|stored| stored.iter().any(|(_, of)| *of == count))
    }

    /// Returns `true` if a file was stored by a form of a request for this number of files before `from`, and was not
    /// replaced by that of another request until `until`.
    pub fn is_stored_for(
        &self,
        file: FileId,
        count: Option<usize>,
        from: Timestamp,
        until: Timestamp,
    ) -> bool {
        let Some(stored) = self.stored.get(&file) else { return false };
        let before = stored.iter().filter(|(at, _)| *at <= from).max_by_key(|(at, _)| *at);
        let between = || stored.iter().filter(|(at, _)| *at > from && *at <= until);
        before.is_some_and(|(_, of)| *of == count) && between().all(|(_, of)| *of == count)
    }

    /// Returns the maximum number of files of the search.
    pub fn most_files(&self) -> usize {
        if self.is_keyed { MAX_KEYED_FILES } else { self.repairs.unwrap_or(self.files.len()) }
    }
}

/// The files that were read to their end.
pub(super) type FilesRead = BTreeMap<FileRef, ParsedFile>;

/// The number of earlier lists of files.
const EARLIER: usize = 3;

/// The state that is stored outside the engine, and the true history.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// `true` if files that were put into the bucket by hand are admitted; `None` until it is chosen at random.
    pub admits_untokened: Option<bool>,
    /// The clients that have started.
    pub clients: BTreeSet<u64>,
    /// The answers to keyed requests.
    pub told: BTreeMap<SearchId, Vec<(NewSearch, KeyedAnswer)>>,
    /// Keyed searches whose client was refused and repeats its request.
    pub unanswered: BTreeSet<SearchId>,
    /// The searches of keyed requests whose creation was attempted; a planted defect uses them.
    pub attempted: BTreeSet<SearchId>,
    /// The files of keyed searches that a client has started to upload.
    pub uploaded: BTreeSet<FileId>,
    /// The timer of each search; a planted defect uses it.
    pub due: BTreeMap<SearchId, (MessageId, Timestamp)>,
    /// The truth about each search.
    pub truth: BTreeMap<SearchId, Truth>,
    /// Uploaded files.
    pub objects: Vec<StoredObject>,
    /// The files that were read to their end.
    pub files: FilesRead,
    /// Earlier lists of these files, for reads of a deposed primary.
    pub earlier_files: VecDeque<FilesRead>,
    /// The identities of the studies of each file.
    pub studies: BTreeMap<FileRef, BTreeMap<u64, Identity>>,
    /// The studies of each key, including deleted ones.
    pub keyed: BTreeSet<(u64, StudyRef)>,
    /// The number of changes of the project.
    pub revision: Revision,
    /// The keys of exports.
    pub exports: BTreeSet<String>,
    /// The exports that clients were promised.
    pub promised: BTreeMap<ExportId, PromisedExport>,
    /// The exports that parsers were unable to make during a long outage.
    pub unmade: BTreeSet<ExportId>,
    /// The keys of exports whose request arrived after the deletion of the search, when no worker was waiting for it or
    /// another worker had handled their command.
    pub stray: BTreeSet<String>,
    /// The searches whose files were being read when the database was restored.
    pub interrupted: BTreeSet<SearchId>,
    /// The longest list of files of each search, for a defect.
    pub listed: BTreeMap<SearchId, Vec<ParsedFile>>,
    /// The marks of studies, and the revision that wrote them.
    pub marks: BTreeMap<StudyRef, (Revision, Option<Duplicate>)>,
    /// The parse commands that took effect.
    pub parsed: BTreeMap<FileRef, BTreeSet<MessageId>>,
    /// The attempts at each file, and the reader version of the latest attempt.
    pub readings: BTreeMap<FileRef, (AttemptState, u32)>,
    /// The number of consecutive attempts at each file that crashed, or could not record their end.
    pub unfinished: BTreeMap<FileRef, u32>,
    /// Files that were refused after too many crashes.
    pub crashed: BTreeSet<FileRef>,
    /// The position at which the latest attempt at each file began.
    pub begun_at: BTreeMap<FileRef, Option<ReadingStatus>>,
    /// The last study of each file that a defect has not stored yet.
    pub held: BTreeMap<FileRef, (u64, Identity)>,
    /// Files whose parse command was dead-lettered.
    pub given_up: BTreeSet<FileRef>,
    /// Files whose studies were not deleted because the delete command was dead-lettered.
    pub left: BTreeSet<FileRef>,
    /// The files among these that were affected by an outage longer than the retention of queues.
    pub outlasted: BTreeSet<FileRef>,
    /// Searches whose bucket scan was dead-lettered.
    pub looks_outlasted: BTreeSet<SearchId>,
}

/// A file that is about to be stored.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) search: SearchId,
    pub(super) file: FileId,
    pub(super) key: String,
    pub(super) version: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) quality: Quality,
}

impl Outside {
    /// Replaces what is stored in the database. A restore does not change the objects and the record of actual events.
    /// A client whose keyed request was undone starts again: it repeats the request, and uploads the files by the forms
    /// of the answer.
    pub(super) fn restore(&mut self, backup: &Self) {
        let Self { files, studies, keyed, revision, marks, readings, .. } = backup.clone();
        (self.files, self.studies, self.keyed, self.revision) = (files, studies, keyed, revision);
        (self.marks, self.readings) = (marks, readings);
        self.begun_at = backup.begun_at.clone();
        self.held = backup.held.clone();
        self.listed = backup.listed.clone();
        self.told = backup.told.clone();
        self.uploaded = backup.uploaded.clone();
        self.earlier_files.clear();
    }

    /// Returns the completely read files of a search in their order.
    pub fn files_of(&self, search: SearchId) -> Vec<ParsedFile> {
        files_of(&self.files, search)
    }

    /// Keeps the list of files before a change.
    pub(super) fn keep_files(&mut self) {
        self.earlier_files.push_back(self.files.clone());
        if self.earlier_files.len() > EARLIER {
            self.earlier_files.pop_front();
        }
    }

    /// Changes the stored result of a file to that of another reader version, which counted one record more.
    pub(super) fn change_reader(&mut self, search: SearchId, file: FileId) {
        // A completely read file is not read again.
        let Some((reading, reader)) = self.readings.get_mut(&FileRef::new(search, file)) else { return };
        match &mut reading.place {
            Some(place) if place.is_final() => {
                *reader = 0;
                return;
            }
            Some(place) => of_version(place, 0),
            None => {}
        }
        *reader = 0;
        if let Some(studies) = self.studies.remove(&FileRef::new(search, file)) {
            for (record, study) in studies {
                self.keep(search, file, Identity { record: record + 1, ..study });
            }
        }
    }

    /// Returns `true` if a file has this fence.
    pub(super) fn holds(&self, file: &FileFence) -> bool {
        let known = self.readings.get(&FileRef::new(file.search_id, file.file_id));
        known.is_some_and(|(reading, _)| reading.fence == file.fence)
    }

    /// Raises the fence of a file that was neither completely read nor refused, and deletes its studies. Returns their
    /// number.
    pub(super) fn discard(&mut self, file: &FileFence, then: Option<ReadingStatus>) -> Option<usize> {
        let key = FileRef::new(file.search_id, file.file_id);
        let (reading, _) = self.readings.get_mut(&key).filter(|(reading, _)| {
            reading.fence == file.fence && !reading.place.as_ref().is_some_and(ReadingStatus::is_final)
        })?;
        reading.fence += 1;
        reading.place = then;
        self.held.remove(&key);
        Some(self.studies.remove(&key).map_or(0, |studies| studies.len()))
    }

    /// Stores the identity of a study unless it exists.
    fn keep(&mut self, search_id: SearchId, file_id: FileId, study: Identity) {
        let at = StudyRef { search_id, file_id, record: study.record };
        self.keyed.extend(study.fields.keys().into_iter().map(|key| (key, at)));
        self.studies
            .entry(FileRef::new(search_id, file_id))
            .or_default()
            .entry(study.record)
            .or_insert(study);
    }

    /// Returns the identity of a study.
    pub fn study(&self, at: StudyRef) -> Option<&Identity> {
        self.studies.get(&at.file())?.get(&at.record)
    }

    /// Returns the identity of a study with its current mark.
    pub(super) fn with_mark(&self, search_id: SearchId, file_id: FileId, study: &Identity) -> Identity {
        let at = StudyRef { search_id, file_id, record: study.record };
        let is_marked = self.marks.get(&at).is_some_and(|(_, mark)| mark.is_some());
        Identity { is_marked, ..study.clone() }
    }

    /// Resets a file to unread, and keeps its stored studies.
    pub(super) fn withdraw(&mut self, search: SearchId, file: FileId, refused: ReadingStatus) {
        let new = || (AttemptState::default(), references::READER_VERSION);
        let (reading, _) = self.readings.entry(FileRef::new(search, file)).or_insert_with(new);
        let before = reading.place.replace(refused);
        reading.fence += u64::from(!matches!(before, Some(ReadingStatus::Refused { .. })));
        if self.files.contains_key(&FileRef::new(search, file)) {
            self.keep_files();
            self.files.remove(&FileRef::new(search, file));
        }
    }

    /// Deletes all studies of a file permanently. Returns their number.
    pub(super) fn remove(&mut self, search: SearchId, file: FileId, refused: ReadingStatus) -> usize {
        self.withdraw(search, file, refused);
        self.held.remove(&FileRef::new(search, file));
        self.studies.remove(&FileRef::new(search, file)).map_or(0, |studies| studies.len())
    }

    /// Returns the latest checkpoint of a file.
    pub(super) fn place(&self, search: SearchId, file: FileId) -> Option<ReadingStatus> {
        self.readings.get(&FileRef::new(search, file)).and_then(|(reading, _)| reading.place.clone())
    }

    /// Returns `true` if a file was refused, or its studies were deleted permanently.
    pub(super) fn is_refused(&self, search: SearchId, file: FileId) -> bool {
        matches!(self.place(search, file), Some(ReadingStatus::Refused { .. }))
    }

    /// Returns `true` if a file has no stored studies and cannot get any.
    pub(super) fn is_removed(&self, search: SearchId, file: FileId) -> bool {
        self.is_refused(search, file) && !self.studies.contains_key(&FileRef::new(search, file))
    }

    /// Stores studies; existing ones stay unchanged.
    pub(super) fn store(&mut self, studies: Vec<Study>) {
        if let Some(first) = studies.first() {
            self.store_delayed_study(first.search_id, first.file_id);
        }
        for study in studies {
            let identity = Identity::of(study.record, &study.reference);
            self.keep(study.search_id, study.file_id, identity);
        }
    }

    /// Stores the study that a defect has delayed.
    pub(super) fn store_delayed_study(&mut self, search: SearchId, file: FileId) {
        if let Some((_, study)) = self.held.remove(&FileRef::new(search, file)) {
            self.keep(search, file, study);
        }
    }

    /// Returns an object in the given version, or in its latest one.
    pub fn object(&self, key: &str, version: Option<&str>) -> Option<&StoredObject> {
        let is_version =
            |stored: &StoredObject| version.is_none() || stored.object.version.as_deref() == version;
        self.objects.iter().rev().find(|stored| stored.object.key == key && is_version(stored))
    }

    /// Returns the latest versions of the objects whose keys have this prefix.
    pub(super) fn found(&self, prefix: &str) -> Vec<ObjectRef> {
        let below = self.objects.iter().filter(|stored| stored.object.key.starts_with(prefix));
        let by_key = below.map(|stored| (stored.object.key.clone(), stored.object.clone()));
        let exports = self.exports.iter().filter(|key| key.starts_with(prefix)).map(|key| {
            let (bucket, key, version) = (BUCKET.to_owned(), key.clone(), None);
            (key.clone(), ObjectRef { bucket, key, version, size_bytes: 0 })
        });
        let latest: BTreeMap<String, ObjectRef> = by_key.chain(exports).collect();
        latest.into_values().map(|object| ObjectRef { version: None, ..object }).collect()
    }

    /// Returns the number of parse commands that took effect on files that were not abandoned.
    pub(super) fn commands(&self) -> usize {
        let kept = self.parsed.iter().filter(|(file, _)| !self.given_up.contains(file));
        kept.map(|(_, commands)| commands.len()).sum()
    }

    /// Returns the keys of exports, except those that parsers were unable to write, since a late duplicate of their
    /// command may succeed, and those that a late duplicate may remove: of a deletion, or of the command, if the search
    /// no longer has the files.
    pub(super) fn made_exports(&self, project: ProjectId) -> BTreeSet<&str> {
        let lacks_files = |files: &BTreeSet<FileRef>| files.iter().any(|file| !self.files.contains_key(file));
        let removable = self.promised.iter().filter(|(_, export)| lacks_files(&export.files));
        let removable = removable.map(|(export, _)| export);
        let passing: BTreeSet<String> =
            self.unmade.iter().chain(removable).map(ExportId::to_string).collect();
        let lasting = self.exports.difference(&self.stray).map(String::as_str);
        let is_any_deleted = self.truth.values().any(|truth| truth.deleted);
        let shared = ExportFolder::Review(project).to_string();
        let may_be_removed = |key: &str| is_any_deleted && key.starts_with(&shared);
        let lasting = lasting.filter(|key| !may_be_removed(key));
        lasting.filter(|key| !passing.iter().any(|export| key.contains(export))).collect()
    }

    /// Returns the number of studies of each file that was not abandoned.
    pub(super) fn counts(&self) -> BTreeMap<FileRef, usize> {
        let kept = self.studies.iter().filter(|(file, _)| !self.given_up.contains(file));
        kept.map(|(file, studies)| (*file, studies.len())).collect()
    }
}

/// Stores an object, and sends its notification.
pub(super) fn store(scene: &mut Scene<'_, Outside>, upload: Upload) {
    let Upload { search, file, key, version, metadata, quality } = upload;
    scene.note(|| format!("file {} of search {} is stored", short(&file), short(&search)));
    debug_assert!(ObjectKey::parse(KEY_PREFIX, &key).is_ok());
    let now = scene.now();
    if let Some(truth) = scene.truth.get_mut(&search) {
        let metadata = UploadMetadata::from_map(&metadata).ok().flatten();
        let count = metadata.map(|metadata| metadata.expected_files);
        truth.stored.entry(file).or_default().push((now, count));
    }
    let version_field =
        version.as_ref().map_or_else(String::new, |version| format!(r#","versionId":"{version}""#));
    let event = format!(
        r#"{{"Records":[{{"eventName":"ObjectCreated:Post","s3":{{"bucket":{{"name":"{BUCKET}"}},"object":{{"key":"{key}"{version_field}}}}}}}]}}"#
    );
    let bytes = match quality {
        Quality::Good => Some(Cow::Borrowed(TWO_RECORDS)),
        Quality::Long => Some(Cow::Borrowed(LONG.as_slice())),
        Quality::HalfReadable => Some(Cow::Borrowed(HALF_READABLE.as_slice())),
        Quality::Bad => Some(Cow::Borrowed(NO_RECORD)),
        Quality::Unreadable => None,
    };
    let size_bytes = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
    let object = ObjectRef { bucket: BUCKET.to_owned(), key, version, size_bytes };
    scene.objects.retain(|stored| stored.object != object);
    scene.objects.push(StoredObject { object, metadata, stored_at: now, bytes });
    let fate = scene.rng().below(24);
    if fate == 0 {
        // S3 makes three attempts.
        return scene.note(|| "nobody is told".to_owned());
    }
    let admits = scene.admits_untokened == Some(true);
    if let Some(truth) = scene.truth.get_mut(&search) {
        truth.notified += usize::from(admits || !truth.by_hand.contains(&file));
    }
    match fate {
        1 => {
            let late = Duration::from_millis(scene.rng().between(HOUR_MS / 4, 5 * HOUR_MS));
            scene.later(late, move |scene| scene.post(&UPLOADS, &event));
        }
        _ => scene.post(&UPLOADS, &event),
    }
}

/// The files of a search, in their order.
pub(super) fn files_of(files: &FilesRead, search: SearchId) -> Vec<ParsedFile> {
    let mut files: Vec<_> = files.values().filter(|file| file.search_id == search).cloned().collect();
    files.sort_by_key(|file| file.position);
    files
}

/// Returns a checkpoint as if another reader version had written it.
pub(super) fn of_version(place: &mut ReadingStatus, version: u32) {
    if let ReadingStatus::Within(checkpoint) = place
        && let Some(checkpoint) = checkpoint.as_object_mut()
    {
        checkpoint.insert("reader".to_owned(), version.into());
    }
}
