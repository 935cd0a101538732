//! The clients: one that announces a search and uploads its files by form, one that repeats its requests with an
//! idempotency key, and a user who puts files into the bucket by hand.

mod afterwards;
mod announced;
mod by_hand;
mod keyed;

use std::time::Duration;

use imports::{FileId, Ports, ProjectId, SearchId};
use service::{AnnouncedSearch, NewFile, NewSearch, SearchService};
use simulation::{Access, Rng, Scene};
use uuid::Uuid;

use super::outside::{Outside, Quality, Upload, store};

/// Just before and after the search times out.
const LATE_MS: (u64, u64) = (3_560_000, 3_640_000);

/// The announced size of every file.
const SIZE_BYTES: u64 = 100;

/// The only project.
pub(super) fn project() -> ProjectId {
    ProjectId::from_uuid(Uuid::nil())
}

/// Runs a client. After a crash, only the client with an idempotency key starts over.
pub(super) async fn run(ports: Ports, access: Access<Outside>, mut rng: Rng) {
    let Ok(function) = SearchService::over(&ports, &functions::SYSTEM) else { return };
    let (kind, id) = (rng.below(8), rng.draw());
    if kind == 0 {
        return keyed::run(function, access, rng).await;
    }
    if !access.with(|scene| scene.clients.insert(id)) {
        return;
    }
    match kind {
        1 | 2 => by_hand::run(function, access, rng).await,
        _ => announced::run(function, access, rng).await,
    }
}

/// The plan of a client for a file.
#[derive(Debug, Clone, Copy)]
struct FileIntent {
    quality: Quality,
    after_ms: Option<u64>,
    copies: u32,
    versioned: bool,
}

impl FileIntent {
    fn draw(rng: &mut Rng) -> Self {
        let quality = match rng.below(20) {
            0 => Quality::Unreadable,
            1 => Quality::Bad,
            2 => Quality::HalfReadable,
            3 | 4 => Quality::Long,
            _ => Quality::Good,
        };
        let after_ms = match rng.below(30) {
            0 => None,
            1 | 2 => Some(rng.between(LATE_MS.0, LATE_MS.1)),
            3 => Some(rng.between(120_000, LATE_MS.0)),
            4..=9 => Some(rng.between(10_000, 120_000)),
            _ => Some(rng.below(3_000)),
        };
        Self { quality, after_ms, copies: if rng.one_in(6) { 2 } else { 1 }, versioned: rng.one_in(3) }
    }

    /// Stores the file once for each upload of the client.
    fn store(self, scene: &mut Scene<'_, Outside>, upload: &Upload) {
        let Some(after_ms) = self.after_ms else { return };
        for copy in 0..self.copies {
            let version = self.versioned.then(|| copy.to_string());
            let upload = Upload { version, ..upload.clone() };
            let after_ms = after_ms + scene.rng().below(2_000) * u64::from(copy);
            scene.later(Duration::from_millis(after_ms), move |scene| store(scene, upload));
        }
    }
}

/// Returns a request for this number of files.
fn request(files: usize) -> NewSearch {
    let file = |n| NewFile { name: format!("{n}.ris"), size_bytes: SIZE_BYTES };
    NewSearch { name: "search".to_owned(), files: (0..files).map(file).collect() }
}

/// Returns the files of a search in its order.
pub(super) fn files_of(search: SearchId, count: usize) -> impl Iterator<Item = FileId> {
    (0..=u8::MAX).take(count).map(move |index| FileId::announced(search, index))
}

/// Schedules the uploads of a search's files, each with its form. `of` selects the files.
fn upload(
    scene: &mut Scene<'_, Outside>,
    announced: &AnnouncedSearch,
    of: impl Fn(FileId) -> Option<FileIntent>,
) {
    for form in &announced.files {
        let Some(intent) = of(form.file_id) else { continue };
        let mut metadata = form.upload.fields.clone();
        let Some(key) = metadata.remove("key") else { continue };
        let (search, file, quality) = (announced.search_id, form.file_id, intent.quality);
        intent.store(scene, &Upload { search, file, key, version: None, metadata, quality });
    }
}
