//! What this program works on: a data directory, or the services that the settings name.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use anyhow::{anyhow, bail};
use backend::{Backend, BackendKind, Config, SystemHost};
use embedded::{DATABASE, MAX_DECISIONS, OpenError, Settings, Store};
use functions::SYSTEM;
use imports::queues::QUEUES;
use imports::{Jobs, Ports, ProjectId, SearchId, StudyStores};
use local::{Home, Runner, Trial};
use messages::{Host, Noted, Observation, Observe, QueueSpec, Verdict};
#[cfg(feature = "services")]
use saga::Service;
use telemetry::LogDecisions;

use crate::args;
use crate::interrupt::resume_command;

/// How often a message may be received in a data directory. Each interruption of this program counts as one, and an
/// import that a user interrupts a few times is not poison.
const RECEIVE_LIMIT: u32 = 20;

/// How many decisions are read in one call.
const DECISIONS_AT_ONCE: usize = 1_000;

/// The queues of a data directory.
static PATIENT: LazyLock<Vec<QueueSpec>> = LazyLock::new(|| {
    let patient = |spec: &QueueSpec| QueueSpec {
        receive_limit: spec.receive_limit.map(|_| RECEIVE_LIMIT),
        ..spec.clone()
    };
    QUEUES.iter().map(patient).collect()
});

/// The settings: the environment's, and what was given on the command line instead.
pub(crate) fn settings(place: &args::Place) -> anyhow::Result<Config> {
    let mut config = Config::from_env()?;
    if let Some(dir) = &place.data_dir {
        config.data_dir.clone_from(dir);
    }
    if let Some(backend) = place.backend {
        config.backend = backend.into();
    }
    if config.backend == BackendKind::Aws && cfg!(not(feature = "services")) {
        bail!(
            "this program is built without the aws backend; `cargo build --package cli --features services` builds it \
             with it"
        );
    }
    Ok(config)
}

/// An open backend.
pub(crate) struct Workspace {
    pub(crate) backend: Backend,
    /// The data directory that this program works in; none for services, and for one that is only looked at.
    home: Option<Home<Ports>>,
}

impl Workspace {
    /// Opens it for work: a data directory as the only program that works in it, services once all of them are
    /// known to be there.
    pub(crate) async fn open(config: Config) -> anyhow::Result<Self> {
        let host: Arc<dyn Host> = Arc::new(SystemHost);
        match config.backend {
            BackendKind::Embedded => {
                is_no_file(&config.data_dir)?;
                let lock = Arc::new(Store::lock(&config.data_dir)?);
                let settings = Settings { queues: &PATIENT, ..backend::store_settings(&config) };
                let store = Arc::new(Store::open(&config.data_dir, Arc::clone(&host), settings)?);
                store.recover(&lock).await?;
                let observer = Arc::new(TellRejected(Arc::clone(&store)));
                let backend = backend::embedded(&store, Arc::clone(&host), observer.clone(), config);
                let config = backend.config.clone();
                let ports = move |store: &Arc<Store>| {
                    backend::embedded(store, Arc::clone(&host), observer.clone(), config.clone()).ports
                };
                Ok(Self { backend, home: Some(Home { store, lock, ports: Arc::new(ports) }) })
            }
            BackendKind::Aws => {
                #[cfg(feature = "services")]
                backend::services::check(&config, Arc::clone(&host)).await?;
                let backend = backend::open(config, host, Arc::new(LogDecisions)).await?;
                Ok(Self { backend, home: None })
            }
        }
    }

    /// Opens an existing data directory for work. A new one has nothing to work on.
    pub(crate) async fn reopen(config: Config) -> anyhow::Result<Self> {
        has_folder(&config)?;
        Self::open(config).await
    }

    /// Opens it for an operator, beside programs that may be working in it.
    pub(crate) async fn operate(config: Config) -> anyhow::Result<Self> {
        has_folder(&config)?;
        #[cfg(feature = "services")]
        complete(&config, &[Service::DATABASE, Service::LEDGER]).await?;
        let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
        Ok(Self { backend, home: None })
    }

    /// Opens it to look into it, beside programs that may be working in it.
    pub(crate) async fn look_into(config: Config) -> anyhow::Result<Self> {
        has_folder(&config)?;
        let host: Arc<dyn Host> = Arc::new(SystemHost);
        let backend = match config.backend {
            BackendKind::Embedded => {
                let dir = &config.data_dir;
                let store = Store::open_read_only(dir, Arc::clone(&host), &PATIENT)
                    .map_err(|error| next_step(dir, error))?;
                backend::embedded(&Arc::new(store), host, Arc::new(()), config)
            }
            BackendKind::Aws => {
                #[cfg(feature = "services")]
                complete(&config, &[Service::DATABASE]).await?;
                backend::open(config, host, Arc::new(())).await?
            }
        };
        Ok(Self { backend, home: None })
    }

    /// The ports.
    pub(crate) fn ports(&self) -> &Ports {
        &self.backend.ports
    }

    /// The machine.
    pub(crate) fn host(&self) -> &dyn Host {
        self.ports().engine.host.as_ref()
    }

    /// Imports as their readers see them.
    pub(crate) fn jobs(&self) -> anyhow::Result<Jobs> {
        Ok(self.ports().jobs()?)
    }

    /// What the database holds of imports.
    pub(crate) fn study_stores(&self) -> anyhow::Result<&StudyStores> {
        Ok(self.ports().study_stores()?)
    }

    /// The data directory that this program works in; none for services.
    pub(crate) fn home(&self) -> Option<&Home<Ports>> {
        self.home.as_ref()
    }

    /// Runs the functions.
    pub(crate) fn runner(&self, trial: &args::Trial) -> anyhow::Result<Runner<Ports>> {
        let home = self.home().cloned();
        if home.is_none() && trial.crash.is_some() {
            bail!("--crash tears down workers of the embedded backend; elsewhere, kill the process");
        }
        let trial = Trial { copies: trial.duplicate, shuffle: trial.shuffle, crash: trial.crash };
        let runner = Runner::new(&SYSTEM, self.ports().clone(), home, trial);
        Ok(runner.with_visibility(self.backend.config.visibility))
    }

    /// What was decided about the messages of a search, as much as a data directory keeps of it; none where no history is
    /// kept.
    pub(crate) async fn decisions(
        &self,
        search: SearchId,
    ) -> anyhow::Result<Option<Vec<Observation<Noted>>>> {
        let is_kept = self.backend.config.history.is_some();
        let Some(history) = self.ports().engine.history.as_ref().filter(|_| is_kept) else { return Ok(None) };
        let (mut decisions, mut after) = (Vec::new(), None);
        while decisions.len() < MAX_DECISIONS {
            let page = history.history(Some(search), after, DECISIONS_AT_ONCE).await?;
            let Some((place, _)) = page.last() else { break };
            after = Some(*place);
            decisions.extend(page.into_iter().map(|(_, decision)| decision));
        }
        Ok(Some(decisions))
    }

    /// The project that a command is about: the one that it names, or that of the settings.
    pub(crate) fn project(&self, named: args::Project) -> ProjectId {
        named.project.unwrap_or(self.backend.config.project)
    }

    /// Where it is, in a message.
    pub(crate) fn name(&self) -> String {
        let config = &self.backend.config;
        match config.backend {
            BackendKind::Embedded => config.data_dir.display().to_string(),
            BackendKind::Aws => format!("database {}", config.services.mongodb_database),
        }
    }
}

/// Fails if the embedded backend has no data directory, and names the next step.
pub(crate) fn has_folder(config: &Config) -> anyhow::Result<()> {
    if config.backend != BackendKind::Embedded {
        return Ok(());
    }
    let (dir, shown) = (&config.data_dir, config.data_dir.display());
    is_no_file(dir)?;
    if !dir.exists() {
        bail!(
            "there is no data directory {shown}; name another with --data-dir, or begin with `search-import import FILE`"
        );
    }
    if is_unused(dir) {
        bail!(
            "{shown} is not a data directory, as it has no {DATABASE}; name another with --data-dir, or begin with \
             `search-import import FILE`"
        );
    }
    Ok(())
}

/// Returns `true` if the folder is missing, or has neither a database nor uploaded files.
pub(crate) fn is_unused(dir: &Path) -> bool {
    (dir.is_dir() || !dir.exists()) && !dir.join(DATABASE).exists() && !dir.join("objects").exists()
}

fn is_no_file(dir: &Path) -> anyhow::Result<()> {
    if dir.exists() && !dir.is_dir() {
        bail!("{} is a file, and a data directory is a folder; name another with --data-dir", dir.display());
    }
    Ok(())
}

/// Returns why a data directory cannot be read, with the next step.
fn next_step(dir: &Path, error: OpenError) -> anyhow::Error {
    let shown = dir.display();
    match error {
        OpenError::Older { found: 0, .. } => {
            anyhow!("nothing has been imported into {shown} yet; `search-import import FILE` begins")
        }
        OpenError::Older { .. } => anyhow!(
            "an earlier version of this program wrote {shown}; `{}` upgrades it, then repeat this command",
            resume_command(&args::Place { backend: None, data_dir: Some(dir.to_owned()) })
        ),
        OpenError::Folder { .. } if !dir.join(DATABASE).exists() => anyhow!(
            "{} is missing; restore it from a backup, or name another folder with --data-dir",
            dir.join(DATABASE).display()
        ),
        error => anyhow::Error::new(error).context(format!("looking into {shown} failed")),
    }
}

/// Whether everything is set that leads to these services, if they are those of AWS.
#[cfg(feature = "services")]
async fn complete(config: &Config, services: &[Service]) -> Result<(), backend::OpenError> {
    match config.backend {
        BackendKind::Embedded => Ok(()),
        BackendKind::Aws => backend::complete(config, services, &[]).await,
    }
}

/// Has the decisions kept in the data directory, and logs those that give a message up.
struct TellRejected(Arc<Store>);

impl Observe for TellRejected {
    fn observe(&self, observation: Observation) {
        if observation.verdict == Verdict::Rejected {
            LogDecisions.observe(observation.clone());
        }
        self.0.observe(observation);
    }
}
