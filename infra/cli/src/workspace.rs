//! The workspace of a command: a data directory, or the configured services.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{anyhow, bail};
use backend::{Backend, BackendKind, Config, SystemHost};
use embedded::{DATABASE, LockError, OpenError, Settings, Store};
use functions::{SYSTEM, dispatch_outbox};
use imports::queues::QUEUES;
use imports::{Jobs, Ports, ProjectId, SearchId, StudyStores};
use local::{FaultInjection, Home, Runner};
use messages::escape::escape_for_terminal;
use messages::{DecisionRecord, DecisionSink, Host, QueueSpec, RecordedVerdict, Verdict};
use operate::health::QueueReport;
#[cfg(feature = "services")]
use saga::Service;
use telemetry::LogDecisions;

use crate::interrupt::resume_command;
use crate::{args, interrupt};

/// The receive limit of messages in a data directory. Every interruption of this program counts as a receive, and must
/// not dead-letter the message.
const RECEIVE_LIMIT: u32 = 20;

/// The interval between checks whether all work is done.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The queues of a data directory, with [`RECEIVE_LIMIT`].
static LOCAL_QUEUES: LazyLock<Vec<QueueSpec>> = LazyLock::new(|| {
    let with_limit = |spec: &QueueSpec| QueueSpec {
        receive_limit: spec.receive_limit.map(|_| RECEIVE_LIMIT),
        ..spec.clone()
    };
    QUEUES.iter().map(with_limit).collect()
});

/// Returns `true` if a message waits for a function, as `health` counts them.
async fn has_work(store: &Store) -> anyhow::Result<bool> {
    let depths = store.count_messages().await?;
    let queues: Vec<QueueReport> =
        depths.into_iter().map(|(queue, depth)| QueueReport::of(&queue, depth)).collect();
    Ok(operate::health::waiting(&SYSTEM, &queues) > 0)
}

/// Returns the settings of the environment, overridden by those of the command line.
pub(crate) fn settings(location: &args::Location) -> anyhow::Result<Config> {
    let mut config = Config::from_env()?;
    if let Some(dir) = &location.data_dir {
        config.data_dir.clone_from(dir);
    }
    if let Some(backend) = location.backend {
        config.backend = backend.into();
    }
    if config.backend == BackendKind::Aws && cfg!(not(feature = "services")) {
        bail!(
            "this program was built without the aws backend; `cargo build --package cli --features services` includes it"
        );
    }
    Ok(config)
}

/// An open backend.
pub(crate) struct Workspace {
    pub(crate) backend: Backend,
    /// The data directory that this program has locked for work. `None` with services, and if the directory is only
    /// read or operated on.
    home: Option<Home<Ports>>,
}

impl Workspace {
    /// Opens a backend for work: a data directory exclusively, or services after a check that all of them exist.
    pub(crate) async fn open(config: Config) -> anyhow::Result<Self> {
        let host: Arc<dyn Host> = Arc::new(SystemHost);
        match config.backend {
            BackendKind::Embedded => {
                is_no_file(&config.data_dir)?;
                let lock = Arc::new(Store::lock(&config.data_dir)?);
                let settings = Settings { queues: &LOCAL_QUEUES, ..backend::store_settings(&config) };
                let store = Arc::new(Store::open(&config.data_dir, Arc::clone(&host), settings)?);
                store.recover(&lock).await?;
                let observer = Arc::new(RejectionLog(Arc::clone(&store)));
                let backend = backend::embedded(&store, Arc::clone(&host), observer.clone(), config);
                let config = backend.config.clone();
                let ports = move |store: &Arc<Store>| {
                    backend::embedded(store, Arc::clone(&host), observer.clone(), config.clone()).ports
                };
                Ok(Self { backend, home: Some(Home { store, lock, ports: Arc::new(ports) }) })
            }
            BackendKind::Aws => {
                #[cfg(feature = "services")]
                backend::search::services::check(&config, Arc::clone(&host)).await?;
                let backend = backend::open(config, host, Arc::new(LogDecisions)).await?;
                Ok(Self { backend, home: None })
            }
        }
    }

    /// Opens an existing data directory for work. Fails for a new data directory, which contains no imports.
    pub(crate) async fn reopen(config: Config) -> anyhow::Result<Self> {
        has_folder(&config)?;
        Self::open(config).await
    }

    /// Opens it for an operator's changes, while other programs may be working in it.
    pub(crate) async fn operate(config: Config) -> anyhow::Result<Self> {
        has_folder(&config)?;
        #[cfg(feature = "services")]
        check_settings(&config, &[Service::DATABASE, Service::LEDGER]).await?;
        let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
        Ok(Self { backend, home: None })
    }

    /// Opens it for work if it is a data directory in which no other program works, and otherwise for an operator's
    /// changes.
    pub(crate) async fn open_or_operate(config: Config) -> anyhow::Result<Self> {
        has_folder(&config)?;
        if config.backend != BackendKind::Embedded {
            return Self::operate(config).await;
        }
        // The lock is released at once, for the store to take it. Any other error of the lock is repeated there.
        let is_in_use = matches!(Store::lock(&config.data_dir), Err(LockError::Held { .. }));
        if is_in_use { Self::operate(config).await } else { Self::open(config).await }
    }

    /// Opens it for reading, while other programs may be working in it.
    pub(crate) async fn open_read_only(config: Config) -> anyhow::Result<Self> {
        has_folder(&config)?;
        let host: Arc<dyn Host> = Arc::new(SystemHost);
        let backend = match config.backend {
            BackendKind::Embedded => {
                let dir = &config.data_dir;
                let store = Store::open_read_only(dir, Arc::clone(&host), Settings::new(&LOCAL_QUEUES))
                    .map_err(|error| next_step(dir, error))?;
                backend::embedded(&Arc::new(store), host, Arc::new(()), config)
            }
            BackendKind::Aws => {
                #[cfg(feature = "services")]
                check_settings(&config, &[Service::DATABASE]).await?;
                backend::open(config, host, Arc::new(())).await?
            }
        };
        Ok(Self { backend, home: None })
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.backend.ports
    }

    pub(crate) fn host(&self) -> &dyn Host {
        self.ports().engine.host.as_ref()
    }

    /// Returns the views of imports.
    pub(crate) fn jobs(&self) -> anyhow::Result<Jobs> {
        Ok(self.ports().jobs()?)
    }

    /// Returns the stored studies and files of imports.
    pub(crate) fn study_stores(&self) -> anyhow::Result<&StudyStores> {
        Ok(self.ports().study_stores()?)
    }

    /// Returns the data directory that this program holds for work; `None` for services.
    pub(crate) fn home(&self) -> Option<&Home<Ports>> {
        self.home.as_ref()
    }

    /// Returns a runner of the functions that injects the given faults.
    pub(crate) fn runner(&self, faults: &args::FaultInjection) -> anyhow::Result<Runner<Ports>> {
        let home = self.home().cloned();
        if home.is_none() && faults.crash.is_some() {
            bail!("--crash crashes workers of the embedded backend only; with aws, kill the process");
        }
        let faults =
            FaultInjection { copies: faults.duplicate, shuffle: faults.shuffle, crash: faults.crash };
        let runner = Runner::new(&SYSTEM, self.ports().clone(), home, faults);
        let indexing = dispatch_outbox::upkeep(self.ports())?;
        Ok(runner.with_visibility(self.backend.config.visibility).with_upkeep(indexing))
    }

    /// Runs the functions until they are idle, or until Ctrl-C is pressed, if this program holds the data directory.
    /// Otherwise other workers do the work. Returns `true` if there was work.
    pub(crate) async fn run_until_idle(&self, location: &args::Location) -> anyhow::Result<bool> {
        let Some(home) = self.home() else { return Ok(false) };
        let runner = self.runner(&args::FaultInjection::default())?;
        let work = async {
            // An interrupted command may have left due effects, and the workers' first sweep may be a minute away.
            runner.sweep().await?;
            let has_work = has_work(&home.store).await?;
            let idle = async {
                while runner.is_idle().await? != Some(true) {
                    self.host().sleep(POLL_INTERVAL).await;
                }
                anyhow::Ok(())
            };
            runner.run_until(idle).await??;
            Ok(has_work)
        };
        let resume = || format!("`{}` finishes the work", resume_command(location));
        interrupt::unless_interrupted(work, resume).await
    }

    /// Returns the decisions about the messages of a search, up to 10,000; `None` if no history is kept.
    pub(crate) async fn decisions(
        &self,
        search: SearchId,
    ) -> anyhow::Result<Option<Vec<DecisionRecord<RecordedVerdict>>>> {
        let is_kept = self.backend.config.history.is_some();
        let Some(history) = self.ports().engine.history.as_ref().filter(|_| is_kept) else { return Ok(None) };
        Ok(Some(operate::instance::decisions(history.as_ref(), search).await?))
    }

    /// Returns the project of a command, which comes from the command line or from the settings.
    pub(crate) async fn project(&self, named: &args::Project) -> anyhow::Result<ProjectId> {
        match &named.project {
            Some(review) => self.review(review).await,
            None => Ok(self.backend.config.search.project),
        }
    }

    /// Returns the review of a command for messages: by the name that the user typed, or by its id.
    pub(crate) fn review_label(&self, named: &args::Project) -> String {
        let id = match &named.project {
            Some(args::ReviewName { name: Some(name), .. }) => {
                return format!("review \"{}\"", escape_for_terminal(name));
            }
            Some(args::ReviewName { name: None, id }) => *id,
            None => self.backend.config.search.project,
        };
        if id.as_uuid().is_nil() { "the default review".to_owned() } else { format!("review {id}") }
    }

    /// Returns the listed review with a name, regardless of case, or the one whose id is derived from the name.
    pub(crate) async fn review(&self, named: &args::ReviewName) -> anyhow::Result<ProjectId> {
        let Some(name) = &named.name else { return Ok(named.id) };
        let records = &self.ports().engine.stores()?.records;
        let listed = service::review_named(records.as_ref(), name).await?;
        Ok(listed.map_or(named.id, |review| review.project_id))
    }

    /// Returns a name of the workspace for messages.
    pub(crate) fn name(&self) -> String {
        let config = &self.backend.config;
        match config.backend {
            BackendKind::Embedded => config.data_dir.display().to_string(),
            BackendKind::Aws => format!("database {}", config.services.mongodb_database),
        }
    }
}

/// Fails if the embedded backend has no data directory, and names the next step.
fn has_folder(config: &Config) -> anyhow::Result<()> {
    if config.backend != BackendKind::Embedded {
        return Ok(());
    }
    let (dir, shown) = (&config.data_dir, config.data_dir.display());
    is_no_file(dir)?;
    if !dir.exists() {
        bail!(
            "there is no data directory {shown}; name another with --data-dir, or start with `search-import import FILE`"
        );
    }
    if is_unused(dir) {
        bail!(
            "{shown} is not a data directory, because it has no {DATABASE}; name another with --data-dir, or start with \
             `search-import import FILE`"
        );
    }
    Ok(())
}

/// Returns `true` if the folder does not exist, or contains neither a database nor uploaded files.
pub(crate) fn is_unused(dir: &Path) -> bool {
    (dir.is_dir() || !dir.exists()) && !dir.join(DATABASE).exists() && !dir.join("objects").exists()
}

fn is_no_file(dir: &Path) -> anyhow::Result<()> {
    if dir.exists() && !dir.is_dir() {
        bail!("{} is a file, but a data directory is a folder; name another with --data-dir", dir.display());
    }
    Ok(())
}

/// Returns why a data directory cannot be read, with the next step.
fn next_step(dir: &Path, error: OpenError) -> anyhow::Error {
    let shown = dir.display();
    match error {
        OpenError::Older { found: 0, .. } => {
            anyhow!("nothing has been imported into {shown} yet; start with `search-import import FILE`")
        }
        OpenError::Older { .. } => anyhow!(
            "an earlier version of this program wrote {shown}; `{}` upgrades it, then repeat this command",
            resume_command(&args::Location { backend: None, data_dir: Some(dir.to_owned()) })
        ),
        OpenError::Folder { .. } if !dir.join(DATABASE).exists() => anyhow!(
            "{} is missing; restore it from a backup, or name another folder with --data-dir",
            dir.join(DATABASE).display()
        ),
        // SQLite needs files of its own in the folder, also to read.
        OpenError::Database { .. } if !is_writable(dir) => anyhow!(
            "{shown} cannot be written, which reading needs as well; copy the folder, and name the copy with --data-dir"
        ),
        error => anyhow::Error::new(error).context(format!("opening {shown} failed")),
    }
}

/// Returns `true` if files can be created in a folder.
fn is_writable(dir: &Path) -> bool {
    tempfile::tempfile_in(dir).is_ok()
}

/// Checks that all settings of these services are present, if the backend is `aws`.
#[cfg(feature = "services")]
async fn check_settings(config: &Config, services: &[Service]) -> Result<(), backend::OpenError> {
    match config.backend {
        BackendKind::Embedded => Ok(()),
        BackendKind::Aws => backend::complete(config, services, &[]).await,
    }
}

/// Stores decisions in the data directory, and also logs rejected messages.
struct RejectionLog(Arc<Store>);

impl DecisionSink for RejectionLog {
    fn observe(&self, observation: DecisionRecord) {
        if observation.verdict == Verdict::Rejected {
            LogDecisions.observe(observation.clone());
        }
        self.0.observe(observation);
    }
}
