//! A client after its announcement: it requests exports and repairs, deletes the search, or decides about its studies.

use std::time::Duration;

use imports::{FileRef, SearchId, StudyRef};
use service::exported_studies::ExportOptions;
use service::{
    AnnouncedSearch, DecisionKind, DecisionOutcome, DecisionRequest, Deletion, FilesToExport, NewRepair,
    ProjectAccess, Refusal, Repair, SearchService, StoredSearch,
};
use simulation::access::short;
use simulation::{Access, Rng, Scene};

use super::project;
use crate::simulation::outside::{Outside, PromisedExport, Truth};
use crate::simulation::situations::{DECIDED, DELETED, EXPORTED, EXPORTED_TOGETHER, REPAIRED};

/// The maximum number of requests until a search has ended.
const TRIES: u32 = 9;
/// The time before the second request. Each later request waits twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(20);

/// Runs such a client in some schedules.
pub(super) async fn run(function: &SearchService, access: &Access<Outside>, search: SearchId, mut rng: Rng) {
    let (exports, repairs, deletes) = (rng.one_in(5), rng.one_in(5), rng.one_in(4));
    if exports {
        export(function, access, search).await;
    }
    if repairs {
        repair(function, access, search).await;
    }
    if deletes {
        if rng.one_in(2) {
            access.sleep(Duration::from_secs(rng.below(4_000))).await;
        }
        delete(function, access, search).await;
    } else if rng.one_in(3) {
        decide(function, access, search, rng).await;
    }
}

/// Returns the time to wait after each request that was made too early.
fn waits() -> impl Iterator<Item = Duration> {
    (0..TRIES).map(|nth| FIRST_WAIT * 2_u32.pow(nth))
}

async fn export(function: &SearchService, access: &Access<Outside>, search: SearchId) {
    for wait in waits() {
        access.reach_another_instance();
        if let Ok(Some(stored)) = function.stored(&ProjectAccess::All, search).await {
            if stored.files.is_empty() && stored.job.state.has_ended() {
                return;
            }
            if !stored.files.is_empty()
                && let files = with_another(function, access, stored).await
                && let parts = files.files.iter().map(|part| FileRef::new(part.search, part.file.file_id))
                && let parts = parts.collect()
                && let Ok(Ok((_, export))) =
                    function.make_export(project(), &ExportOptions::default(), &files).await
            {
                access.with(|scene| {
                    let is_shared = files.jobs.len() > 1;
                    scene.note(|| format!("an export of search {} is promised", short(&search)));
                    scene.meet(if is_shared { EXPORTED_TOGETHER } else { EXPORTED });
                    scene.promised.insert(export, PromisedExport { search, files: parts, is_shared });
                });
                return;
            }
        }
        access.sleep(wait).await;
    }
}

/// Adds the files of another search of the project, if one is stored.
async fn with_another(
    function: &SearchService,
    access: &Access<Outside>,
    stored: StoredSearch,
) -> FilesToExport {
    let search = stored.job.search_id;
    let mut files = FilesToExport::from(stored);
    let other = access.with(|scene| scene.files.keys().map(|file| file.search_id).find(|id| *id != search));
    if let Some(other) = other
        && let Ok(Some(stored)) = function.stored(&ProjectAccess::All, other).await
        && !stored.files.is_empty()
    {
        let other = FilesToExport::from(stored);
        files.files.extend(other.files);
        files.jobs.extend(other.jobs);
    }
    files
}

/// Decides up to three times about two studies of the search.
async fn decide(function: &SearchService, access: &Access<Outside>, search: SearchId, mut rng: Rng) {
    for _ in 0..=rng.below(3) {
        if !decide_once(function, access, search, &mut rng).await {
            return;
        }
        access.sleep(Duration::from_secs(rng.below(600))).await;
    }
}

/// Decides about two studies of the search, once two are stored. Returns `false` if no decision was accepted.
async fn decide_once(
    function: &SearchService,
    access: &Access<Outside>,
    search: SearchId,
    rng: &mut Rng,
) -> bool {
    for wait in waits() {
        let studies: Vec<StudyRef> = access.with(|scene| {
            let of_search = scene.studies.iter().filter(|(file, _)| file.search_id == search);
            let at = |file: &FileRef, record| StudyRef { search_id: search, file_id: file.file_id, record };
            of_search.flat_map(|(file, known)| known.keys().map(|record| at(file, *record))).collect()
        });
        if studies.len() > 1 {
            let first = rng.index(studies.len());
            let other = (first + 1 + rng.index(studies.len() - 1)) % studies.len();
            let decision = rng.pick(&[DecisionKind::Same, DecisionKind::Different, DecisionKind::Undo]);
            let pair = [studies[first], studies[other]];
            let request = DecisionRequest { decision, studies: &pair, if_undecided: false, undoes: None };
            if let Ok(DecisionOutcome::Accepted { is_new: true }) =
                function.decide(project(), request, "reviewer").await
            {
                access.with(|scene| {
                    scene.note(|| format!("a reviewer decides about studies of search {}", short(&search)));
                    scene.meet(DECIDED);
                });
                return true;
            }
        }
        access.sleep(wait).await;
    }
    false
}

async fn repair(function: &SearchService, access: &Access<Outside>, search: SearchId) {
    let request = NewRepair::default();
    for wait in waits() {
        access.reach_another_instance();
        match function.repair(&ProjectAccess::All, search, &request, Some("repair")).await {
            Ok(Repair::Announced(announced)) => {
                return access.with(|scene| take_note(scene, search, &announced));
            }
            Ok(Repair::Refused(Refusal::Ended(search_id))) => {
                let announced = AnnouncedSearch { search_id, files: Vec::new() };
                return access.with(|scene| take_note(scene, search, &announced));
            }
            Ok(Repair::Refused(Refusal::Running)) | Err(_) => access.sleep(wait).await,
            Ok(Repair::Refused(_) | Repair::Unknown) => return,
        }
    }
}

/// Records a search that reads stored files of another search again.
fn take_note(scene: &mut Scene<'_, Outside>, search: SearchId, announced: &AnnouncedSearch) {
    scene.note(|| format!("search {} repairs {}", short(&announced.search_id), short(&search)));
    scene.meet(REPAIRED);
    let repairs = scene.truth.get(&search).map(|original| original.files.len());
    let truth = Truth { announced: true, repairs, ..Truth::default() };
    scene.truth.insert(announced.search_id, truth);
}

async fn delete(function: &SearchService, access: &Access<Outside>, search: SearchId) {
    for wait in waits() {
        access.reach_another_instance();
        access.with(|scene| {
            if let Some(truth) = scene.truth.get_mut(&search) {
                truth.deleted = true;
            }
        });
        match function.delete(&ProjectAccess::All, search).await {
            Ok(Deletion::Accepted) => {
                return access.with(|scene| {
                    scene.note(|| format!("search {} is deleted", short(&search)));
                    scene.meet(DELETED);
                });
            }
            Ok(Deletion::Unknown) => return,
            Ok(Deletion::Running | Deletion::Needed(_)) | Err(_) => access.sleep(wait).await,
        }
    }
}
