//! Fault trials requested over the HTTP API: imports of sample files with injected faults, in a temporary folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use async_trait::async_trait;
use backend::Config;
use http_api::{RunTrials, Trial, TrialOutcome};
use messages::store::chain;
use service::{NewFile, NewSearch, SearchService};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::sync::Mutex;

use crate::report::Report;
use crate::workspace::Workspace;
use crate::{args, watch};

/// The imported files.
const SAMPLES: [(&str, &[u8]); 2] = [
    ("psycinfo.ris", include_bytes!("../../../tests/samples/psycinfo.ris")),
    ("pubmed.nbib", include_bytes!("../../../tests/samples/pubmed.nbib")),
];
/// The number of studies in the samples.
const EXPECTED: u64 = 6;
/// The time limit of a trial. A trial without crashes takes less than a second.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs one trial at a time.
#[derive(Default)]
pub(crate) struct Trials {
    running: Arc<Mutex<()>>,
}

#[async_trait]
impl RunTrials for Trials {
    async fn run(&self, trial: Trial) -> Result<Option<TrialOutcome>, String> {
        let Ok(running) = Arc::clone(&self.running).try_lock_owned() else { return Ok(None) };
        // A separate runtime, so that injected crashes affect nothing else.
        let tried = tokio::task::spawn_blocking(move || {
            // Held until the trial ends, even if its client has disconnected.
            let _running = running;
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { tokio::time::timeout(LIMIT, once(trial)).await? })
        });
        match tried.await {
            Ok(Ok(tried)) => Ok(Some(tried)),
            Ok(Err(error)) => Err(chain(error.as_ref())),
            Err(error) => Err(error.to_string()),
        }
    }
}

async fn once(trial: Trial) -> anyhow::Result<TrialOutcome> {
    let began = Instant::now();
    let folder = TempDir::new().context("creating a folder for the trial")?;
    let config = Config { data_dir: folder.path().join("data"), ..Config::default() };
    let workspace = Workspace::open(config).await?;
    let faults = args::FaultInjection {
        duplicate: trial.copies,
        shuffle: trial.shuffle.map(u64::from),
        crash: trial.crash.map(u64::from),
    };
    let runner = workspace.runner(&faults)?;
    let service = SearchService::over(&runner.ports(), &functions::SYSTEM)?;
    let files =
        SAMPLES.map(|(name, content)| NewFile { name: name.to_owned(), size_bytes: content.len() as u64 });
    let request = NewSearch { name: "Trial".to_owned(), files: files.into() };
    let announced =
        service.create(workspace.project(&args::Project { project: None }).await?, &request).await?;
    let home = workspace.home().context("a trial needs a data directory")?;
    let work = async {
        let uploaded = async {
            for (upload, (name, content)) in announced.files.iter().zip(SAMPLES) {
                let path: PathBuf = folder.path().join(name);
                std::fs::write(&path, content).context("writing a sample")?;
                home.store.upload_file(&upload.upload, &path).await?;
            }
            watch::until_ended(&runner, &workspace, announced.search_id, false).await
        };
        runner.run_until(uploaded).await?
    };
    work.await?;
    let report = Report::of(&workspace, announced.search_id, began.elapsed()).await?;
    let decisions = workspace.decisions(announced.search_id).await?.unwrap_or_default();
    Ok(TrialOutcome {
        expected: EXPECTED,
        studies: report.studies,
        crashes: runner.crashes(),
        elapsed_ms: report.elapsed_ms,
        decisions,
        command: command(trial),
    })
}

/// Returns the command that runs the same trial in the repository.
fn command(trial: Trial) -> String {
    let mut command = "search-import import".to_owned();
    for (name, _) in SAMPLES {
        command.push_str(&format!(" tests/samples/{name}"));
    }
    if trial.copies > 1 {
        command.push_str(&format!(" --duplicate {}", trial.copies));
    }
    for (option, seed) in [("shuffle", trial.shuffle), ("crash", trial.crash)] {
        if let Some(seed) = seed {
            command.push_str(&format!(" --{option} {seed}"));
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn injected_faults_store_every_study_once() {
        let trials = Trials::default();
        for trial in [
            Trial { copies: 1, shuffle: None, crash: None },
            Trial { copies: 3, shuffle: Some(7), crash: None },
            Trial { copies: 2, shuffle: Some(1), crash: Some(4) },
        ] {
            let tried = trials.run(trial).await.unwrap().unwrap();
            assert_eq!(tried.studies, EXPECTED, "{trial:?}");
            assert_eq!(tried.crashes > 0, trial.crash.is_some(), "{trial:?}");
            let dropped = tried.decisions.iter().filter(|d| d.verdict == messages::Verdict::Duplicate);
            assert_eq!(dropped.count() > 0, trial.copies > 1, "{trial:?}");
        }
        let _held = trials.running.lock().await;
        let trial = Trial { copies: 1, shuffle: None, crash: None };
        assert!(trials.run(trial).await.unwrap().is_none(), "one at a time");
    }

    #[tokio::test]
    async fn trial_of_disconnected_client_blocks_others() {
        let trials = Trials::default();
        let trial = Trial { copies: 1, shuffle: None, crash: None };
        let mut disconnected = trials.run(trial);
        assert!(futures::poll!(&mut disconnected).is_pending());
        drop(disconnected);
        assert!(trials.run(trial).await.unwrap().is_none());
        // The test ends with the trial, which would otherwise use its folder while the process exits.
        drop(trials.running.lock().await);
    }

    #[test]
    fn command_repeats_the_faults() {
        let trial = Trial { copies: 3, shuffle: Some(7), crash: Some(1) };
        let samples = "tests/samples/psycinfo.ris tests/samples/pubmed.nbib";
        let expected = format!("search-import import {samples} --duplicate 3 --shuffle 7 --crash 1");
        assert_eq!(command(trial), expected);
    }
}
