//! A client: it announces a search, uploads its files, and may withdraw it.

use std::time::Duration;

use functions::start_upload::{Announced, NewFile, NewSearch, StartUpload};
use imports::{Ports, ProjectId};
use simulation::access::short;
use simulation::{Access, Rng, Scene};
use uuid::Uuid;

use super::outside::{Outside, Quality, Truth, Upload, store};

/// Just before and after the search times out.
const LATE_MS: (u64, u64) = (3_560_000, 3_640_000);

/// What one client is going to do.
#[derive(Debug, Clone)]
struct Intent {
    /// Whether it uploads even without the confirmation that the search is announced.
    remembers: bool,
    /// How long after the announcement it withdraws the search, if it does.
    withdraws_after: Option<Duration>,
    files: Vec<FileIntent>,
}

#[derive(Debug, Clone, Copy)]
struct FileIntent {
    quality: Quality,
    after_ms: Option<u64>,
    copies: u32,
    versioned: bool,
}

/// Does what a client does.
pub(super) async fn run(ports: Ports, access: Access<Outside>, mut rng: Rng) {
    let intent = Intent::draw(&mut rng);
    let Ok(function) = StartUpload::over(&ports) else { return };
    let project = ProjectId::from_uuid(Uuid::nil());
    let Ok(prepared) = function.prepare(project, &intent.request()).await else { return };
    let announced = &prepared.announced;
    access.with(|scene| {
        prepare(scene, announced, &intent);
        if intent.remembers {
            upload_all(scene, announced, &intent);
        }
    });
    if function.announce(&prepared).await.is_err() {
        return;
    }
    access.with(|scene| {
        if let Some(truth) = scene.truth.get_mut(&announced.search_id) {
            truth.announced = true;
        }
        if !intent.remembers {
            upload_all(scene, announced, &intent);
        }
    });
    let Some(after) = intent.withdraws_after else { return };
    access.sleep(after).await;
    access.with(|scene| {
        scene.note(|| format!("search {} is to be withdrawn", short(&announced.search_id)));
        if let Some(truth) = scene.truth.get_mut(&announced.search_id) {
            truth.withdrawn = true;
        }
    });
    // What came of it, the client may or may not learn.
    let _ = function.withdraw(announced.search_id).await;
}

impl Intent {
    fn draw(rng: &mut Rng) -> Self {
        let count = rng.pick(&[1, 1, 2, 2, 2, 3]);
        Self {
            remembers: rng.percent(60),
            withdraws_after: rng.one_in(5).then(|| Duration::from_millis(rng.below(10_000))),
            files: (0..count).map(|_| FileIntent::draw(rng)).collect(),
        }
    }

    fn request(&self) -> NewSearch {
        let file = |n| NewFile { name: format!("{n}.ris"), size_bytes: 100 };
        NewSearch { name: "search".to_owned(), files: (0..self.files.len()).map(file).collect() }
    }
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
            3..=8 => Some(rng.between(10_000, 120_000)),
            _ => Some(rng.below(3_000)),
        };
        Self { quality, after_ms, copies: if rng.one_in(6) { 2 } else { 1 }, versioned: rng.one_in(3) }
    }
}

/// Takes note of a search that a client has prepared.
fn prepare(scene: &mut Scene<'_, Outside>, announced: &Announced, intent: &Intent) {
    scene.note(|| format!("prepared search {}", short(&announced.search_id)));
    let files = announced.files.iter().zip(&intent.files);
    let files = files.map(|(upload, file)| (upload.file_id, file.quality)).collect();
    scene.truth.insert(announced.search_id, Truth { files, ..Truth::default() });
}

/// Has the client upload its files from now on.
fn upload_all(scene: &mut Scene<'_, Outside>, announced: &Announced, intent: &Intent) {
    for (upload, file) in announced.files.iter().zip(&intent.files) {
        let Some(after_ms) = file.after_ms else { continue };
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
            let after_ms = after_ms + scene.rng().below(2_000) * u64::from(copy);
            scene.later(Duration::from_millis(after_ms), move |scene| store(scene, upload));
        }
    }
}
