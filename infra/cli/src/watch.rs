//! Waiting for a search to end, with a progress bar for each file.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use functions::SYSTEM;
use imports::{FileId, FilePhase, Job, JobFile, Jobs, Outcome, Ports, Progress, SearchId};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use local::{Runner, output};
use messages::store::chain;
use messages::{Depth, Queue};
use saga::failures::{FailureStatus, Selection};

use crate::args::{Location, Output};
use crate::disk::DiskFull;
use crate::humanize;
use crate::interrupt::{self, resume_command};
use crate::report::Report;
use crate::workspace::Workspace;

/// The interval between reads of the search's state from a data directory.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The interval between reads of the search's state from a remote database.
const REMOTE_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The interval between updates of the progress bars.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);
/// The idle time after which a search that has not ended is considered to be waiting for something external.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The reason why waiting for a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// The search has ended, and all its messages are delivered.
    Ended,
    /// No work is left here, but the search has not ended.
    Waits,
    /// The disk rejected a write, so the search cannot end.
    DiskFull,
}

/// Runs the workers while `begin` announces a search and uploads its files, until the search has ended, and prints its
/// report. Returns `true` if the search completed.
pub(crate) async fn run_to_end(
    runner: &Runner<Ports>,
    workspace: &Workspace,
    output: &Output,
    search: SearchId,
    began: Instant,
    begin: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<bool> {
    let work = async {
        let until_ended = async {
            begin.await?;
            until_ended(runner, workspace, search, !output.json).await
        };
        runner.run_until(until_ended).await?
    };
    let location = &output.location;
    let resume = || format!("`{}` finishes import {search}", resume_command(location));
    let outcome = interrupt::unless_interrupted(work, resume).await;
    let outcome = outcome.map_err(|error| DiskFull::explain(error, workspace, location))?;
    let found = Report::of(workspace, search, began.elapsed()).await?;
    found.print(output.json)?;
    report(outcome, workspace, location, search).await?;
    Ok(found.is_completed())
}

/// Waits until the search has ended, all its messages are delivered, and its outbox is empty, or until no work is left
/// although it has not ended. If other processes work on the search too, this process cannot detect that, and waits
/// without a limit.
pub(crate) async fn until_ended(
    runner: &Runner<Ports>,
    workspace: &Workspace,
    search: SearchId,
    draw: bool,
) -> anyhow::Result<WaitOutcome> {
    let outcome = until_delivered(runner, workspace, search, draw).await?;
    // The last view is due now, but the workers' next sweep may be up to a minute away.
    if outcome != WaitOutcome::DiskFull
        && let Err(error) = runner.sweep().await
    {
        output::complain(&chain(&error));
    }
    Ok(outcome)
}

async fn until_delivered(
    runner: &Runner<Ports>,
    workspace: &Workspace,
    search: SearchId,
    draw: bool,
) -> anyhow::Result<WaitOutcome> {
    let (jobs, store) = (workspace.jobs()?, workspace.home().map(|home| &home.store));
    let mut bars = draw.then(Bars::new);
    let mut busy_at = Instant::now();
    loop {
        let job = jobs.job(search).await?;
        if let (Some(bars), Some(job)) = (&mut bars, &job) {
            bars.draw(job, &jobs).await?;
        }
        let ended = job.is_some_and(|job| job.state.has_ended());
        // Workers retry rejected writes indefinitely, so the runner would never become idle.
        if !ended && store.is_some_and(|store| store.disk_refusal().is_some()) {
            return Ok(WaitOutcome::DiskFull);
        }
        let interval = match runner.is_idle().await? {
            Some(true) if ended => return Ok(WaitOutcome::Ended),
            Some(true) if busy_at.elapsed() > IDLE_TIMEOUT => return Ok(WaitOutcome::Waits),
            None if ended => return Ok(WaitOutcome::Ended),
            None => REMOTE_POLL_INTERVAL,
            Some(true) => POLL_INTERVAL,
            Some(false) => {
                busy_at = Instant::now();
                POLL_INTERVAL
            }
        };
        tokio::time::sleep(interval).await;
    }
}

/// Prints why a search has not ended although no work is left, with the next step.
pub(crate) async fn report(
    outcome: WaitOutcome,
    workspace: &Workspace,
    location: &Location,
    search: SearchId,
) -> anyhow::Result<()> {
    match outcome {
        WaitOutcome::Ended => Ok(()),
        WaitOutcome::DiskFull => {
            Err(DiskFull::of(workspace, location).map_or_else(|| anyhow!("the disk is full"), Into::into))
        }
        WaitOutcome::Waits => {
            output::remark(&why_waiting(workspace, location, search).await?);
            Ok(())
        }
    }
}

async fn why_waiting(workspace: &Workspace, location: &Location, search: SearchId) -> anyhow::Result<String> {
    let depths = workspace.ports().engine.inspect.depths().await;
    let of = |queue: &Queue| depths.get(queue).and_then(|depth| depth.as_ref().ok());
    let dead = SYSTEM.dead_letters();
    let dead: u64 = dead.iter().filter_map(|(queue, _)| of(queue)).map(Depth::total).sum();
    let open =
        workspace.ports().engine.stores()?.failures.causes(&Selection::of(FailureStatus::Open)).await?;
    let failures = dead + open.count;
    let consumed = SYSTEM.functions.iter().filter_map(|function| function.source.queue());
    let delayed: u64 = consumed.filter_map(of).map(|depth| depth.delayed).sum();
    let job = workspace.jobs()?.job(search).await?;
    let missing: Vec<String> = job
        .iter()
        .flat_map(|job| job.files.iter().zip(job.file_names()))
        .filter(|(file, _)| !file.received && file.outcome.is_none())
        .map(|(_, name)| name)
        .collect();
    let resume = resume_command(location);
    Ok(if failures > 0 {
        let failures = humanize::counted(failures, "message has", "messages have");
        format!(
            "import {search} has not ended: {failures} failed permanently; `search-import failures groups` shows the causes"
        )
    } else if delayed > 0 {
        let delayed = humanize::counted(delayed, "message is", "messages are");
        format!("import {search} has not ended: {delayed} delayed after a failure; `{resume}` tries again")
    } else if missing.is_empty() {
        format!(
            "import {search} has not ended, but there is no work to do at present; `search-import show {search}` shows its state"
        )
    } else {
        format!(
            "import {search} is waiting for {}, which was not uploaded; `{resume}` tries the upload again",
            missing.join(", ")
        )
    })
}

/// Returns the name of a phase.
fn name_of(phase: FilePhase) -> &'static str {
    match phase {
        FilePhase::Awaited => "uploading",
        FilePhase::Waiting => "waiting",
        FilePhase::Reading => "reading",
        FilePhase::MarkingDuplicates => "marking duplicates",
        FilePhase::Done => "done",
        FilePhase::Failed => "failed",
    }
}

/// The progress of the files: a bar for each at a terminal, otherwise a line whenever a file enters a new phase.
struct Bars {
    all: MultiProgress,
    files: BTreeMap<FileId, (FilePhase, ProgressBar)>,
    drawn_at: Option<Instant>,
}

impl Bars {
    fn new() -> Self {
        Self { all: MultiProgress::new(), files: BTreeMap::new(), drawn_at: None }
    }

    async fn draw(&mut self, job: &Job, jobs: &Jobs) -> anyhow::Result<()> {
        let recent = self.drawn_at.is_some_and(|at| at.elapsed() < DRAW_INTERVAL);
        if recent && !job.state.has_ended() {
            return Ok(());
        }
        self.drawn_at = Some(Instant::now());
        let progress: BTreeMap<FileId, Progress> = jobs.progress(job.search_id).await?.into_iter().collect();
        for (file, name) in job.files.iter().zip(job.file_names()) {
            let progress = progress.get(&file.file_id).copied();
            self.draw_file(file, &name, job.state.has_ended(), progress);
        }
        Ok(())
    }

    fn draw_file(&mut self, file: &JobFile, name: &str, has_ended: bool, progress: Option<Progress>) {
        let (phase, size) = (FilePhase::of(file, has_ended, progress), file.size_bytes.unwrap_or(0));
        let new = || self.all.add(bar(name));
        let (drawn, bar) = self.files.entry(file.file_id).or_insert_with(|| (FilePhase::Awaited, new()));
        let records = match &file.outcome {
            Some(Outcome::Completed(counts)) => counts.records,
            Some(Outcome::Failed { .. }) | None => progress.unwrap_or_default().records,
        };
        let bytes = if phase == FilePhase::Done { size } else { progress.unwrap_or_default().bytes };
        // A log has no lines for files that wait.
        if self.all.is_hidden() && phase != *drawn && phase != FilePhase::Waiting {
            let so_far = if phase == FilePhase::Reading { 0 } else { records };
            output::remark(&format!("{name}: {}", message(phase, None, so_far)));
        }
        *drawn = phase;
        bar.set_length(size);
        bar.set_position(bytes);
        bar.set_message(message(phase, percent(bytes, size), records));
        if file.outcome.is_some() {
            bar.abandon();
        }
    }
}

/// Formats a file's phase and the number of its records read so far.
fn message(phase: FilePhase, percent: Option<u64>, records: u64) -> String {
    let percent = percent.filter(|_| phase == FilePhase::Reading);
    let percent = percent.map_or_else(String::new, |percent| format!(" {percent} %"));
    let records = if records == 0 { String::new() } else { format!(", {}", humanize::records(records)) };
    format!("{}{percent}{records}", name_of(phase))
}

fn percent(part: u64, whole: u64) -> Option<u64> {
    (u128::from(part) * 100).checked_div(u128::from(whole)).and_then(|percent| u64::try_from(percent).ok())
}

/// Returns a bar of at most 79 columns, which a terminal of 80 columns shows on one line. Longer text is truncated.
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
    use super::*;

    #[test]
    fn longest_message_fits_into_a_bar() {
        assert_eq!(message(FilePhase::Reading, percent(90, 200), 1), "reading 45 %, 1 record");
        assert_eq!(message(FilePhase::Waiting, percent(0, 200), 0), "waiting");
        let longest = message(FilePhase::MarkingDuplicates, percent(200, 200), 2_000_000);
        assert_eq!(longest, "marking duplicates, 2000000 records");
        assert!(longest.len() <= 37, "{longest}");
        assert_eq!(percent(1, 0), None);
    }
}
