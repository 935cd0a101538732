//! The use cases of the search import: what a client of the HTTP API, the command line or the page can ask for.
//!
//! No message is redelivered after a crashed request, so a use case stores everything that belongs together in one
//! transactional session. Tokens are granted before that: a message may arrive as soon as it is sent.
//!
//! - `announce` and `idempotent_create` announce a search and grant the uploads of its files;
//! - `query`, `record_text`, `changes` and `health` read, as does [`mod@operate::effects`];
//! - `cancel`, `repair`, `decisions`, `sources` and `after_restore` change a search; `reviews` changes the list of
//!   reviews;
//! - `activity` keeps the history of a review, and `members` the people who may access it;
//! - `scope` finds the files of a review or an import; `export`, `exported_studies`, `merged` and `study_view` produce
//!   exports;
//! - `marking` marks the duplicates of a project, and `file_deletion` deletes the records of a file, for the parser;
//! - `orphan_studies` finds studies that no search counts, for operators;
//! - `selection` reads the studies that a list or an export selects; `words` builds the index for it;
//! - `content` reads and writes the contents of records;
//! - `caller` states which projects a request may access.

mod activity;
mod after_restore;
mod announce;
pub mod caller;
mod cancel;
mod changes;
mod content;
mod decisions;
mod export;
pub mod exported_studies;
pub mod file_deletion;
pub mod health;
mod idempotent_create;
pub mod marking;
mod members;
mod merged;
pub mod orphan_studies;
mod query;
mod record_text;
mod repair;
mod reviews;
mod scope;
pub mod selection;
pub mod sources;
pub mod study_view;
mod tries;
pub mod words;

use std::sync::Arc;

use futures::lock::Mutex;
use imports::{FindObjects, Jobs, KeepExports, Ports, PresignUpload, ReadObject, ReadStudies, Settings};
use messages::{Host, Reporter, Verdict};
pub use operate::effects;
use outbox::WriteViews;
use saga::engine::OpenSession;
use saga::{EntryPoint, Failures, KeepHistory, MissingSetting, System};

use crate::health::Health;
use crate::tries::PAUSE;

pub use self::activity::{Action, Activity, ActivityPage};
pub use self::after_restore::{AfterRestore, OpenReads, RestoreOutcome};
pub use self::announce::{AnnouncedSearch, Error, NewFile, NewSearch, PreparedSearch, Upload};
pub use self::caller::{Operator, Principal, ProjectAccess, Role};
pub use self::cancel::{Cancellation, Deletion};
pub use self::changes::{Change, ChangeCursor, MAX_SEEN, changes};
pub use self::decisions::bulk::{BulkAction, BulkRefusal, BulkRequest, BulkStep, BulkUndo, DecisionProgress};
pub use self::decisions::kind::{DecisionKind, Rule};
pub use self::decisions::{DecisionOutcome, DecisionRequest, EffectiveDecision};
pub use self::export::{ExportRefusal, ExportState, MAX_IN_PROGRESS, export_file};
pub use self::idempotent_create::{CreateOutcome, FIRST_REQUEST};
pub use self::members::{Member, MemberEditor, MemberRefusal};
pub use self::query::{SearchFilter, StoredSearch, Text, age};
pub use self::record_text::{Around, MAX_RAW_BYTES, Raw, RecordBytes};
pub use self::repair::{
    Fate, FileRefusal, FileRepair, NewRepair, REPAIRS, Refusal, Repair, RepairedFile, Repairs, SearchRepairs,
};
pub use self::reviews::{
    CreatedReview, MAX_REVIEWS, Review, ReviewChange, ReviewDeletion, ReviewRefusal, review_named,
};
pub use self::scope::{
    FilesToExport, MAX_EXPORTED_SEARCHES, Scope, ScopePlace, TooManyImports, TooManySearches,
};

/// The name under which the use cases send messages: the function that answers the HTTP API.
pub const NAME: &str = "start-upload";

/// The use cases of the search import, over the ports that they use.
#[derive(Clone)]
pub struct SearchService {
    /// Opens transactional sessions.
    pub entry: EntryPoint,
    /// Signs upload forms.
    pub presign: Arc<dyn PresignUpload>,
    /// Reads the state of searches.
    pub jobs: Jobs,
    /// Reads the results of files.
    pub studies: Arc<dyn ReadStudies>,
    /// Reads uploaded files.
    pub objects: Arc<dyn ReadObject>,
    /// Lists uploaded files. The use cases never delete through it.
    pub bucket: Arc<dyn FindObjects>,
    /// Creates download links of exports.
    pub exports: Arc<dyn KeepExports>,
    /// Updates the views that clients read.
    pub views: Arc<dyn WriteViews>,
    /// Lists and retries failures.
    pub failures: Failures,
    /// Reads the decisions about messages; `None` without a database.
    pub history: Option<Arc<dyn KeepHistory>>,
    /// Reports the health of the deployment.
    pub health: Health,
    /// Serializes reads of packed files: each process unpacks one part at a time.
    pub unpacking: Arc<Mutex<()>>,
    /// The key prefix and the limits of uploads.
    pub settings: Settings,
}

impl SearchService {
    /// Returns the use cases over these ports of an application.
    pub fn over(ports: &Ports, system: &'static System<Ports>) -> Result<Self, MissingSetting> {
        Ok(Self {
            entry: ports.engine.entry_point(NAME)?,
            presign: ports.uploads.clone()?,
            jobs: ports.jobs()?,
            studies: Arc::clone(&ports.study_stores()?.read_studies),
            objects: ports.objects.clone()?,
            bucket: ports.bucket.clone()?,
            exports: ports.exports.clone()?,
            views: Arc::clone(&ports.engine.stores()?.write_views),
            failures: ports.engine.failures(NAME, system)?,
            history: ports.engine.history.clone(),
            health: Health::over(ports, system)?,
            unpacking: Arc::default(),
            settings: ports.settings.clone(),
        })
    }

    async fn commit(&self, mut session: OpenSession<'_>, why: &str) -> Result<(), Error> {
        for message in session.commit().await? {
            self.reporter().note(Some(&message), Verdict::Handled, why);
        }
        Ok(())
    }

    /// Commits a session. Returns `false` if nothing is stored, because a record was changed concurrently or the commit
    /// took too long. Another session may be committed then.
    async fn committed(&self, session: OpenSession<'_>, why: &str) -> Result<bool, Error> {
        match self.commit(session, why).await {
            Err(Error::Commit(error)) if error.is_refused() => {
                self.host().sleep(PAUSE.after(1, self.host().unit_random())).await;
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    fn reporter(&self) -> &Reporter {
        &self.entry.sessions.dispatcher.reporter
    }

    /// Returns the clock and the source of fresh ids.
    pub fn host(&self) -> &dyn Host {
        self.reporter().host.as_ref()
    }
}
