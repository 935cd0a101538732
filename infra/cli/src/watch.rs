//! Waiting for a search to end, with a bar for each file.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use functions::SYSTEM;
use imports::{FileId, Job, JobFile, Jobs, Outcome, Ports, Progress, SearchId};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use local::{Runner, output};
use messages::store::chain;
use messages::{Depth, Queue};
use saga::failures::{FailureStatus, Selection};

use crate::args::Place;
use crate::disk::Full;
use crate::interrupt::resume_command;
use crate::words;
use crate::workspace::Workspace;

/// How often the search is looked at, here and in a database elsewhere.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOK_ELSEWHERE_EVERY: Duration = Duration::from_millis(200);
/// How often the bars move.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// How long nothing may be left to do before a search that has not ended counts as waiting for the outside.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

/// Why a search is not waited for any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// It has ended, and nothing of it is left to be delivered.
    Ended,
    /// Nothing is left to do here, and it has not ended.
    Waits,
    /// The disk took no more data, so it will not end.
    DiskFull,
}

/// Waits until the search has ended, all its messages are delivered, and nothing of it is left in an outbox; or until nothing
/// is left to do although it has not ended. Where other processes work on the search too, this process cannot detect that,
/// and waits without a limit.
pub(crate) async fn until_ended(
    runner: &Runner<Ports>,
    workspace: &Workspace,
    search: SearchId,
    draw: bool,
) -> anyhow::Result<Over> {
    let over = until_delivered(runner, workspace, search, draw).await?;
    // The last view is due by now, and the next sweep of the workers may be a while away.
    if over != Over::DiskFull
        && let Err(error) = runner.sweep().await
    {
        output::complain(&chain(&error));
    }
    Ok(over)
}

async fn until_delivered(
    runner: &Runner<Ports>,
    workspace: &Workspace,
    search: SearchId,
    draw: bool,
) -> anyhow::Result<Over> {
    let (jobs, store) = (workspace.jobs()?, workspace.home().map(|home| &home.store));
    let mut bars = draw.then(Bars::new);
    let mut busy_at = Instant::now();
    loop {
        let job = jobs.job(search).await?;
        if let (Some(bars), Some(job)) = (&mut bars, &job) {
            bars.draw(job, &jobs).await?;
        }
        let ended = job.is_some_and(|job| job.state.has_ended());
        // Workers try again and again what a full disk has refused, so it would never be idle.
        if !ended && store.is_some_and(|store| store.disk_refusal().is_some()) {
            return Ok(Over::DiskFull);
        }
        let look_again = match runner.is_idle().await? {
            Some(true) if ended => return Ok(Over::Ended),
            Some(true) if busy_at.elapsed() > GIVE_UP_AFTER => return Ok(Over::Waits),
            None if ended => return Ok(Over::Ended),
            None => LOOK_ELSEWHERE_EVERY,
            Some(true) => LOOK_EVERY,
            Some(false) => {
                busy_at = Instant::now();
                LOOK_EVERY
            }
        };
        tokio::time::sleep(look_again).await;
    }
}

/// Says what a search waits for that has not ended although nothing is left to do, with the next step.
pub(crate) async fn tell(
    over: Over,
    (workspace, place): (&Workspace, &Place),
    search: SearchId,
) -> anyhow::Result<()> {
    match over {
        Over::Ended => Ok(()),
        Over::DiskFull => {
            Err(Full::of(workspace, place).map_or_else(|| anyhow!("the disk is full"), Into::into))
        }
        Over::Waits => {
            output::remark(&waits_for(workspace, place, search).await?);
            Ok(())
        }
    }
}

async fn waits_for(workspace: &Workspace, place: &Place, search: SearchId) -> anyhow::Result<String> {
    let depths = workspace.ports().engine.inspect.depths().await;
    let of = |queue: &Queue| depths.get(queue).and_then(|depth| depth.as_ref().ok());
    let dead = SYSTEM.dead_letters();
    let dead: u64 = dead.iter().filter_map(|(queue, _)| of(queue)).map(Depth::total).sum();
    let open =
        workspace.ports().engine.stores()?.failures.groups(&Selection::of(FailureStatus::Open)).await?;
    let failures = dead + open.iter().map(|group| group.count).sum::<u64>();
    let worked = SYSTEM.functions.iter().filter_map(|function| function.source.queue());
    let held_back: u64 = worked.filter_map(of).map(|depth| depth.delayed).sum();
    let job = workspace.jobs()?.job(search).await?;
    let missing: Vec<String> = job
        .iter()
        .flat_map(|job| job.files.iter().zip(job.file_names()))
        .filter(|(file, _)| !file.received && file.outcome.is_none())
        .map(|(_, name)| name)
        .collect();
    let resume = resume_command(place);
    Ok(if failures > 0 {
        let failures = words::counted(failures, "message has", "messages have");
        format!(
            "search {search} has not ended: {failures} failed for good; `search-import failures groups` says why"
        )
    } else if held_back > 0 {
        let held_back = words::counted(held_back, "message is", "messages are");
        format!(
            "search {search} has not ended: {held_back} held back after a failure; `{resume}` tries again"
        )
    } else if missing.is_empty() {
        format!(
            "search {search} has not ended, and nothing is left to do now; `search-import show {search}` shows its state"
        )
    } else {
        format!(
            "search {search} waits for {}, which was not uploaded; `{resume}` tries that again",
            missing.join(", ")
        )
    })
}

/// What a file is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Uploading,
    /// It is here; others are not, or have their turn.
    Waiting,
    Reading,
    /// Everything was read, and what repeats an earlier study is found out.
    MarkingDuplicates,
    Done,
    Failed,
}

impl Phase {
    fn of(file: &JobFile, progress: Option<Progress>) -> Self {
        let size = file.size_bytes.unwrap_or(0);
        match (&file.outcome, progress) {
            (Some(Outcome::Completed(_)), _) => Self::Done,
            (Some(Outcome::Failed { .. }), _) => Self::Failed,
            (None, Some(progress)) if progress.bytes >= size => Self::MarkingDuplicates,
            (None, Some(_)) => Self::Reading,
            (None, None) if file.received => Self::Waiting,
            (None, None) => Self::Uploading,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Uploading => "uploading",
            Self::Waiting => "waiting",
            Self::Reading => "reading",
            Self::MarkingDuplicates => "marking duplicates",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// How far the files are: a bar for each at a terminal, elsewhere a line whenever one is at something else.
struct Bars {
    all: MultiProgress,
    files: BTreeMap<FileId, (Phase, ProgressBar)>,
    drawn_at: Option<Instant>,
}

impl Bars {
    fn new() -> Self {
        Self { all: MultiProgress::new(), files: BTreeMap::new(), drawn_at: None }
    }

    async fn draw(&mut self, job: &Job, jobs: &Jobs) -> anyhow::Result<()> {
        let recent = self.drawn_at.is_some_and(|at| at.elapsed() < DRAW_EVERY);
        if recent && !job.state.has_ended() {
            return Ok(());
        }
        self.drawn_at = Some(Instant::now());
        let progress: BTreeMap<FileId, Progress> = jobs.progress(job.search_id).await?.into_iter().collect();
        for (file, name) in job.files.iter().zip(job.file_names()) {
            let progress = progress.get(&file.file_id).copied();
            self.draw_file(file, &name, progress);
        }
        Ok(())
    }

    fn draw_file(&mut self, file: &JobFile, name: &str, progress: Option<Progress>) {
        let (phase, size) = (Phase::of(file, progress), file.size_bytes.unwrap_or(0));
        let new = || self.all.add(bar(name));
        let (drawn, bar) = self.files.entry(file.file_id).or_insert_with(|| (Phase::Uploading, new()));
        let records = match &file.outcome {
            Some(Outcome::Completed(counts)) => counts.records,
            Some(Outcome::Failed { .. }) | None => progress.unwrap_or_default().records,
        };
        let bytes = if phase == Phase::Done { size } else { progress.unwrap_or_default().bytes };
        // Nobody reads a log to learn that nothing happens.
        if self.all.is_hidden() && phase != *drawn && phase != Phase::Waiting {
            let so_far = if phase == Phase::Reading { 0 } else { records };
            output::remark(&format!("{name}: {}", told(phase, None, so_far)));
        }
        *drawn = phase;
        bar.set_length(size);
        bar.set_position(bytes);
        bar.set_message(told(phase, percent(bytes, size), records));
        if file.outcome.is_some() {
            bar.abandon();
        }
    }
}

/// What a file is at, and how many of its records are known.
fn told(phase: Phase, percent: Option<u64>, records: u64) -> String {
    let percent = percent.filter(|_| phase == Phase::Reading);
    let percent = percent.map_or_else(String::new, |percent| format!(" {percent} %"));
    let records = if records == 0 { String::new() } else { format!(", {}", words::records(records)) };
    format!("{}{percent}{records}", phase.name())
}

fn percent(part: u64, whole: u64) -> Option<u64> {
    (u128::from(part) * 100).checked_div(u128::from(whole)).and_then(|percent| u64::try_from(percent).ok())
}

/// A bar of at most 79 columns, so that no terminal of 80 breaks it into two lines; what has no room is cut off.
fn bar(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:24!} {bar:16} {msg:37!}");
    let bar = ProgressBar::new(0).with_prefix(output::cell(name));
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use imports::Counts;
    use uuid::Uuid;

    use super::*;

    fn file(received: bool, outcome: Option<Outcome>) -> JobFile {
        JobFile {
            file_id: FileId::from_uuid(Uuid::nil()),
            name: None,
            size_bytes: Some(200),
            announced_bytes: None,
            received,
            outcome,
        }
    }

    #[test]
    fn a_file_that_was_read_and_has_no_outcome_has_its_duplicates_marked() {
        let read = |bytes| Some(Progress { records: 3, bytes });
        assert_eq!(Phase::of(&file(false, None), None), Phase::Uploading);
        assert_eq!(Phase::of(&file(true, None), None), Phase::Waiting);
        assert_eq!(Phase::of(&file(true, None), read(199)), Phase::Reading);
        assert_eq!(Phase::of(&file(true, None), read(200)), Phase::MarkingDuplicates);
        let ended = |outcome| Phase::of(&file(true, Some(outcome)), read(200));
        assert_eq!(ended(Outcome::Completed(Counts::default())), Phase::Done);
        assert_eq!(ended(Outcome::Failed { reason: String::new() }), Phase::Failed);
    }

    #[test]
    fn what_is_told_has_room_in_a_bar() {
        assert_eq!(told(Phase::Reading, percent(90, 200), 1), "reading 45 %, 1 record");
        assert_eq!(told(Phase::Waiting, percent(0, 200), 0), "waiting");
        let longest = told(Phase::MarkingDuplicates, percent(200, 200), 2_000_000);
        assert_eq!(longest, "marking duplicates, 2000000 records");
        assert!(longest.len() <= 37, "{longest}");
        assert_eq!(percent(1, 0), None);
    }
}
