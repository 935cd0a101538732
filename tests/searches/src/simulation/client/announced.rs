//! A client that announces a search, uploads its files, and may withdraw it.

use std::time::Duration;

use service::{AnnouncedSearch, ProjectAccess, SearchService};
use simulation::access::short;
use simulation::{Access, Rng, Scene};

use super::{FileIntent, afterwards, project, request, upload};
use crate::simulation::outside::{Outside, Truth};

/// The plan of a client.
#[derive(Debug, Clone)]
struct Intent {
    /// `true` if the client uploads even without the confirmation that the search is announced.
    remembers: bool,
    /// The time after the announcement at which the client cancels the search, if it does.
    withdraws_after: Option<Duration>,
    files: Vec<FileIntent>,
}

/// Runs such a client.
pub(super) async fn run(function: SearchService, access: Access<Outside>, mut rng: Rng) {
    let intent = Intent::draw(&mut rng);
    let Ok(prepared) = function.prepare(project(), &request(intent.files.len())).await else { return };
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
    if let Some(after) = intent.withdraws_after {
        access.sleep(after).await;
        access.with(|scene| {
            scene.note(|| format!("search {} is to be withdrawn", short(&announced.search_id)));
            if let Some(truth) = scene.truth.get_mut(&announced.search_id) {
                truth.withdrawn = true;
            }
        });
        // The client may or may not learn the result.
        let _ = function.cancel(&ProjectAccess::All, announced.search_id).await;
    }
    afterwards::run(&function, &access, announced.search_id, rng).await;
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
}

/// Records a search that a client has prepared.
fn prepare(scene: &mut Scene<'_, Outside>, announced: &AnnouncedSearch, intent: &Intent) {
    scene.note(|| format!("prepared search {}", short(&announced.search_id)));
    let files = announced.files.iter().zip(&intent.files);
    let files = files.map(|(upload, file)| (upload.file_id, file.quality)).collect();
    scene.truth.insert(announced.search_id, Truth { files, ..Truth::default() });
}

fn upload_all(scene: &mut Scene<'_, Outside>, announced: &AnnouncedSearch, intent: &Intent) {
    let place = |id| announced.files.iter().position(|file| file.file_id == id);
    upload(scene, announced, |id| place(id).map(|place| intent.files[place]));
}
