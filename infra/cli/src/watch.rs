//! Waiting for a search to end, with a bar for each file.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use contracts::{FileId, Job, SearchId};
use embedded::Store;
use imports::{Progress, ReadJobs};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use local::Runner;

/// How often the search is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often the bars move.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// How long nothing may be left to do before a search that has not ended counts as waiting for the outside.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

/// Waits until the search has ended and everything said about it is delivered. `false` when it waits for
/// something from outside instead, such as a file that was never uploaded.
pub(crate) async fn until_ended(
    runner: &Runner,
    store: &Store,
    search: SearchId,
    draw: bool,
) -> anyhow::Result<bool> {
    let mut bars = draw.then(Bars::new);
    let mut busy_at = Instant::now();
    loop {
        let job = store.job(search).await?;
        if let (Some(bars), Some(job)) = (&mut bars, &job) {
            bars.draw(job, store).await?;
        }
        let idle = runner.is_idle().await?;
        if !idle {
            busy_at = Instant::now();
        }
        let ended = job.is_some_and(|job| job.state.has_ended());
        if idle && (ended || busy_at.elapsed() > GIVE_UP_AFTER) {
            return Ok(ended);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The bars, one for each file that has arrived.
struct Bars {
    all: MultiProgress,
    files: BTreeMap<FileId, ProgressBar>,
    drawn_at: Option<Instant>,
}

impl Bars {
    fn new() -> Self {
        Self { all: MultiProgress::new(), files: BTreeMap::new(), drawn_at: None }
    }

    async fn draw(&mut self, job: &Job, store: &Store) -> anyhow::Result<()> {
        let recent = self.drawn_at.is_some_and(|at| at.elapsed() < DRAW_EVERY);
        if recent && !job.state.has_ended() {
            return Ok(());
        }
        self.drawn_at = Some(Instant::now());
        let progress: BTreeMap<FileId, Progress> = store.progress(job.search_id).await?.into_iter().collect();
        for file in job.files.iter().filter(|file| file.received) {
            let bar = self.files.entry(file.file_id).or_insert_with(|| {
                let name = file.name.clone().unwrap_or_default();
                self.all.add(bar(file.size_bytes.unwrap_or(0), name))
            });
            let progress = progress.get(&file.file_id).copied().unwrap_or_default();
            bar.set_position(progress.bytes);
            bar.set_message(format!("{} records", progress.records));
            if file.outcome.is_some() {
                bar.abandon();
            }
        }
        Ok(())
    }
}

fn bar(bytes: u64, name: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:30!} {bar:30} {bytes:>10}/{total_bytes:10} {msg}");
    let bar = ProgressBar::new(bytes).with_prefix(name);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
