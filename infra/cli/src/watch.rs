//! Waiting for a search to end, with a bar for each file.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use imports::{FileId, Job, Jobs, Ports, Progress, SearchId};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use local::{Runner, output};

/// How often the search is looked at, here and in a database elsewhere.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOK_ELSEWHERE_EVERY: Duration = Duration::from_millis(200);
/// How often the bars move.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// How long nothing may be left to do before a search that has not ended counts as waiting for the outside.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

/// Waits until the search has ended and all its messages are delivered. `false` when it waits for something from
/// outside instead, such as a file that was never uploaded; where other processes work on the search too, this process
/// cannot detect that, and waits without a limit.
pub(crate) async fn until_ended(
    runner: &Runner<Ports>,
    jobs: &Jobs,
    search: SearchId,
    draw: bool,
) -> anyhow::Result<bool> {
    let mut bars = draw.then(Bars::new);
    let mut busy_at = Instant::now();
    loop {
        let job = jobs.job(search).await?;
        if let (Some(bars), Some(job)) = (&mut bars, &job) {
            bars.draw(job, jobs).await?;
        }
        let ended = job.is_some_and(|job| job.state.has_ended());
        let look_again = match runner.is_idle().await? {
            Some(true) if ended || busy_at.elapsed() > GIVE_UP_AFTER => return Ok(ended),
            None if ended => return Ok(true),
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

    async fn draw(&mut self, job: &Job, jobs: &Jobs) -> anyhow::Result<()> {
        let recent = self.drawn_at.is_some_and(|at| at.elapsed() < DRAW_EVERY);
        if recent && !job.state.has_ended() {
            return Ok(());
        }
        self.drawn_at = Some(Instant::now());
        let progress: BTreeMap<FileId, Progress> = jobs.progress(job.search_id).await?.into_iter().collect();
        for file in job.files.iter().filter(|file| file.received) {
            let bar = self.files.entry(file.file_id).or_insert_with(|| {
                let name = file.name.as_deref().unwrap_or_default();
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

fn bar(bytes: u64, name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:30!} {bar:30} {bytes:>10}/{total_bytes:10} {msg}");
    let bar = ProgressBar::new(bytes).with_prefix(output::cell(name));
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
