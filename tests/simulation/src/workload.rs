//! What happens outside: clients that announce searches and upload files, and what is really in those files.

use std::collections::BTreeMap;

use contracts::message::ObjectRef;
use contracts::{FileId, ObjectKey, SearchId};
use functions::start_upload::{Announced, NewFile, NewSearch};
use outbox::Queue;

use crate::rng::Rng;
use crate::world::{Occasion, StoredObject, World, short};

/// Where uploads go.
pub(crate) const BUCKET: &str = "bucket";
/// What the keys of uploads begin with.
pub(crate) const KEY_PREFIX: &str = "uploads/";
/// Just before and after the search times out.
const LATE_MS: (u64, u64) = (3_560_000, 3_640_000);

const TWO_RECORDS: &[u8] = b"TY  - JOUR\nTI  - A\nDO  - 10.5555/a\nER  - \nTY  - JOUR\nTI  - B\nER  - \n";
const NO_RECORD: &[u8] = b"no reference at all";

/// What is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quality {
    /// Two records.
    Good,
    /// Nothing that can be parsed.
    Bad,
    /// Whoever reads it gets an error, always.
    Unreadable,
}

/// What really happens to a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    /// Its files.
    pub(crate) files: BTreeMap<FileId, Quality>,
    /// How many objects were stored.
    pub(crate) uploads: usize,
    /// Whether the client was told that it is announced.
    pub(crate) announced: bool,
    /// Whether the client asked for its withdrawal.
    pub(crate) withdrawn: bool,
}

/// What one client is going to do.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    /// When it begins.
    pub(crate) begins_ms: u64,
    /// Whether it uploads even when nobody told it that the search is announced.
    pub(crate) remembers: bool,
    /// How long after the announcement it withdraws the search, if it does.
    pub(crate) withdraws_after_ms: Option<u64>,
    files: Vec<FileIntent>,
}

#[derive(Debug, Clone, Copy)]
struct FileIntent {
    quality: Quality,
    after_ms: Option<u64>,
    copies: u32,
    versioned: bool,
}

/// One file that is about to be stored.
#[derive(Debug, Clone)]
pub(crate) struct Upload {
    search: SearchId,
    file: FileId,
    key: String,
    version: Option<String>,
    metadata: BTreeMap<String, String>,
    quality: Quality,
}

impl Intent {
    /// What a client is going to do.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let count = rng.pick(&[1, 1, 2, 2, 2, 3]);
        Self {
            begins_ms: rng.below(2_000),
            remembers: rng.percent(60),
            withdraws_after_ms: rng.one_in(5).then(|| rng.below(10_000)),
            files: (0..count).map(|_| FileIntent::draw(rng)).collect(),
        }
    }

    /// The request.
    pub(crate) fn request(&self) -> NewSearch {
        let file = |n| NewFile { name: format!("{n}.ris"), size_bytes: 100 };
        NewSearch { name: "search".to_owned(), files: (0..self.files.len()).map(file).collect() }
    }
}

impl FileIntent {
    fn draw(rng: &mut Rng) -> Self {
        let quality = match rng.below(20) {
            0 => Quality::Unreadable,
            1 | 2 => Quality::Bad,
            _ => Quality::Good,
        };
        let after_ms = match rng.below(30) {
            0 => None,
            1 | 2 => Some(rng.between(LATE_MS.0, LATE_MS.1)),
            3..=8 => Some(rng.between(10_000, 120_000)),
            _ => Some(rng.below(3_000)),
        };
        Self { quality, after_ms, copies: if rng.one_in(6) { 2 } else { 1 }, versioned: rng.one_in(3) }
    }
}

impl World {
    /// Takes note of a search that a client has prepared.
    pub(crate) fn prepared(&mut self, announced: &Announced, intent: &Intent) {
        let files = announced.files.iter().zip(&intent.files);
        let truth = Truth {
            files: files.map(|(upload, file)| (upload.file_id, file.quality)).collect(),
            ..Truth::default()
        };
        self.note(|| format!("prepared search {}", short(&announced.search_id)));
        self.checks.truth.insert(announced.search_id, truth);
    }

    /// The client was told that the search is announced.
    pub(crate) fn announced(&mut self, search: SearchId) {
        if let Some(truth) = self.checks.truth.get_mut(&search) {
            truth.announced = true;
        }
    }

    /// The client asks for the search to be withdrawn.
    pub(crate) fn withdraws(&mut self, search: SearchId) {
        self.note(|| format!("search {} is to be withdrawn", short(&search)));
        if let Some(truth) = self.checks.truth.get_mut(&search) {
            truth.withdrawn = true;
        }
    }

    /// Has the client upload its files from now on.
    pub(crate) fn upload_all(&mut self, announced: &Announced, intent: &Intent) {
        for (upload, file) in announced.files.iter().zip(&intent.files) {
            let Some(after) = file.after_ms else { continue };
            let mut metadata = upload.upload.fields.clone();
            let Some(key) = metadata.remove("key") else { continue };
            for copy in 0..file.copies {
                let upload = Upload {
                    search: announced.search_id,
                    file: upload.file_id,
                    key: key.clone(),
                    version: file.versioned.then(|| copy.to_string()),
                    metadata: metadata.clone(),
                    quality: file.quality,
                };
                let at = self.now + after + self.rng.below(2_000) * u64::from(copy);
                self.at(at, Occasion::Upload(upload));
            }
        }
    }

    /// Stores an object, and notifies.
    pub(crate) fn store_object(&mut self, upload: Upload) {
        let Upload { search, file, key, version, metadata, quality } = upload;
        self.note(|| format!("file {} of search {} is stored", short(&file), short(&search)));
        debug_assert!(ObjectKey::parse(KEY_PREFIX, &key).is_ok());
        if let Some(truth) = self.checks.truth.get_mut(&search) {
            truth.uploads += 1;
        }
        let version_field =
            version.as_ref().map_or_else(String::new, |version| format!(r#","versionId":"{version}""#));
        let event = format!(
            r#"{{"Records":[{{"eventName":"ObjectCreated:Post","s3":{{"bucket":{{"name":"{BUCKET}"}},"object":{{"key":"{key}"{version_field}}}}}}}]}}"#
        );
        let bytes = match quality {
            Quality::Good => Some(TWO_RECORDS),
            Quality::Bad => Some(NO_RECORD),
            Quality::Unreadable => None,
        };
        let object = ObjectRef { bucket: BUCKET.to_owned(), key, version, size_bytes: 100 };
        self.objects.retain(|stored| stored.object != object);
        self.objects.push(StoredObject { object, metadata, bytes });
        self.post(Queue::Uploads, &event, std::time::Duration::ZERO);
    }
}
