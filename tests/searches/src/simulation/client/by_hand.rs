//! A user who puts the files of a search into the bucket by hand, without a form and therefore without metadata and
//! token, and announces the search before that, later, or never.

use std::collections::BTreeSet;
use std::time::Duration;

use imports::{FileId, ObjectKey, SearchId};
use service::{PreparedSearch, SearchService};
use simulation::access::short;
use simulation::{Access, Rng, Scene};
use uuid::Uuid;

use super::{FileIntent, LATE_MS, files_of, project, request, upload};
use crate::simulation::outside::{Outside, Truth, Upload};
use crate::simulation::situations::KEY_PREFIX;

/// The plan of the user.
#[derive(Debug, Clone)]
struct Intent {
    /// The content of each file, and `true` if it is stored by hand.
    files: Vec<(FileIntent, bool)>,
    announces: Announces,
}

/// The time at which the search is announced.
#[derive(Debug, Clone, Copy)]
enum Announces {
    /// The search is never announced.
    Unheard,
    /// The announcement is only prepared, and never stored.
    Never,
    After(Duration),
}

/// Runs the user.
pub(super) async fn run(function: SearchService, access: Access<Outside>, mut rng: Rng) {
    let intent = Intent::draw(&mut rng);
    let prepared = match intent.announces {
        Announces::Unheard => None,
        Announces::Never | Announces::After(_) => {
            let Ok(prepared) = function.prepare(project(), &request(intent.files.len())).await else {
                return;
            };
            Some(prepared)
        }
    };
    let unheard = SearchId::from_uuid(Uuid::from_u64_pair(rng.draw(), rng.draw()));
    let search = prepared.as_ref().map_or(unheard, |prepared| prepared.announced.search_id);
    access.with(|scene| put_all(scene, search, prepared.as_ref(), &intent));
    let (Announces::After(after), Some(prepared)) = (intent.announces, prepared) else { return };
    access.sleep(after).await;
    if function.announce(&prepared).await.is_ok() {
        access.with(|scene| {
            if let Some(truth) = scene.truth.get_mut(&search) {
                truth.announced = true;
            }
        });
    }
}

impl Intent {
    fn draw(rng: &mut Rng) -> Self {
        let count = rng.pick(&[1, 1, 2, 3]);
        let files = (0..count).map(|_| (FileIntent::draw(rng), !rng.one_in(5))).collect();
        let announces = match rng.below(10) {
            0 => Announces::Unheard,
            1 | 2 => Announces::Never,
            3 => Announces::After(Duration::ZERO),
            4 => Announces::After(Duration::from_millis(rng.between(LATE_MS.0, LATE_MS.1 + 60_000))),
            5 => Announces::After(Duration::from_millis(rng.between(600_000, 9_000_000))),
            _ => Announces::After(Duration::from_millis(rng.between(1_000, 150_000))),
        };
        Self { files, announces }
    }
}

/// Schedules the storing of all files, with a form or by hand; files without a form are always stored by hand.
fn put_all(
    scene: &mut Scene<'_, Outside>,
    search: SearchId,
    prepared: Option<&PreparedSearch>,
    intent: &Intent,
) {
    scene.note(|| format!("the files of search {} are put into the bucket by hand", short(&search)));
    let files: Vec<(FileId, FileIntent, bool)> = files_of(search, intent.files.len())
        .zip(&intent.files)
        .map(|(id, (file, by_hand))| (id, *file, *by_hand || prepared.is_none()))
        .collect();
    let by_hand: BTreeSet<FileId> = files.iter().filter(|file| file.2).map(|file| file.0).collect();
    let qualities = files.iter().map(|(id, file, _)| (*id, file.quality)).collect();
    scene.truth.insert(search, Truth { files: qualities, by_hand: by_hand.clone(), ..Truth::default() });
    for (n, (file, intent, _)) in files.iter().enumerate().filter(|(_, file)| file.2) {
        let key = ObjectKey {
            prefix: KEY_PREFIX.to_owned(),
            project: project(),
            search,
            file: *file,
            token: None,
            name: format!("{n}.ris"),
        };
        let (key, metadata, quality) = (key.to_string(), Default::default(), intent.quality);
        intent.store(scene, &Upload { search, file: *file, key, version: None, metadata, quality });
    }
    let Some(prepared) = prepared else { return };
    let by_form = |id| files.iter().find(|file| file.0 == id && !file.2).map(|file| file.1);
    upload(scene, &prepared.announced, by_form);
}
