//! The operator's commands after a restore: `after-restore` before the functions start again, and `check --delete` once
//! everything is at rest.

use imports::{FileRef, Job, JobState, Ports};
use service::orphan_studies::OrphanStudies;
use service::{AfterRestore, OpenReads, RestoreOutcome, SearchService};
use simulation::access::short;
use simulation::{Access, RestoredStores};

use super::outside::Outside;

/// Defect: the operator starts the functions again without `after-restore`.
pub(super) const UNSETTLED: &str = "no search is settled after a restore";
/// Defect: `after-restore` settles only the searches that their views list.
pub(super) const UNLISTED: &str = "after-restore omits a search whose view is not written";
/// Defect: replies are admitted although the database was restored.
pub(super) const REPLIES_ADMITTED: &str = "a restored database is treated as a restored ledger";

/// Defect: the studies of decisions are not compared again after a restore of the database.
pub(super) const UNCOMPARED: &str = "no decided studies are compared after a restore";

const OPERATOR: &str = "operator";

/// Runs `after-restore` once. Returns `false` if the operator has to repeat the command.
pub(super) async fn after_restore(ports: Ports, access: Access<Outside>, what: RestoredStores) -> bool {
    let Ok(start) = SearchService::over(&ports, &functions::SYSTEM) else { return false };
    let reading = match what.has_database() && !access.has(REPLIES_ADMITTED) {
        true => OpenReads::End,
        false => OpenReads::Continue,
    };
    let after = AfterRestore::new(start, reading, OPERATOR.to_owned());
    let Some(unfinished) = unfinished(&ports, &access, &after).await else { return false };
    let mut is_done = true;
    for job in unfinished {
        if what.has_database() && job.state == JobState::Parsing {
            access.with(|scene| scene.interrupted.insert(job.search_id));
        }
        if access.has(UNSETTLED) {
            continue;
        }
        let settled = after.settle(job.search_id).await;
        is_done &= matches!(settled, Ok(settled) if settled != RestoreOutcome::Busy);
        access.with(|scene| {
            let words = settled.map_or_else(|error| error.to_string(), |settled| settled.words().to_owned());
            scene.note(|| format!("after-restore: search {} {words}", short(&job.search_id)));
        });
    }
    // After a failure, the operator repeats the command.
    if is_done && what.has_database() && !access.has(UNCOMPARED) {
        is_done = compare_decided(&after).await;
    }
    is_done
}

/// Returns the searches to settle; `None` if a store is unavailable.
async fn unfinished(ports: &Ports, access: &Access<Outside>, after: &AfterRestore) -> Option<Vec<Job>> {
    match access.has(UNLISTED) {
        true => ports.jobs().ok()?.unfinished().await.ok(),
        false => after.unfinished().await.ok(),
    }
}

/// Compares the studies of all decisions again. Returns `false` if the operator has to repeat the command.
async fn compare_decided(after: &AfterRestore) -> bool {
    let Ok(projects) = after.projects().await else { return false };
    for project in projects {
        if after.compare_decided(project).await.is_err() {
            return false;
        }
    }
    true
}

/// Runs `check --delete` once. Returns `false` if the operator has to repeat the command.
pub(super) async fn check_stored(ports: Ports, access: Access<Outside>) -> bool {
    let Ok(check) = OrphanStudies::over(&ports, &functions::SYSTEM, OPERATOR.to_owned()) else {
        return false;
    };
    let (mut after, mut orphans) = (None::<FileRef>, Vec::new());
    loop {
        let Ok(page) = check.page(after).await else { return false };
        orphans.extend(page.files);
        if page.next.is_none() {
            break;
        }
        after = page.next;
    }
    for (file, reason) in orphans {
        access.with(|scene| {
            let (search, file) = (short(&file.search_id), short(&file.file_id));
            scene.note(|| format!("check: file {file} of search {search}: {reason}"));
            scene.meet(super::situations::REPORTED);
        });
        if !matches!(check.delete(&file).await, Ok(true)) {
            return false;
        }
    }
    true
}
