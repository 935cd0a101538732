//! The tables of the application in the same database: its own rows, read and written in the transaction of a session.

use std::sync::Arc;

use async_trait::async_trait;
use messages::StoreError;
use outbox::session::WorkVerdict;
use outbox::{CommitOutcome, CommitSession, SessionRecord};
use rusqlite::Connection;

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::{schema, sessions};

/// The work of an application in the transaction of a session. It leaves the transaction open.
pub type SessionWork = Arc<dyn Fn(&Connection) -> rusqlite::Result<WorkVerdict> + Send + Sync>;

/// Commits sessions together with the work of the application.
#[derive(Clone)]
pub struct WithWork {
    store: Store,
    work: SessionWork,
}

impl Store {
    /// Returns an adapter that commits a session together with `work`, in one transaction:
    ///
    /// ```no_run
    /// # use embedded::{Store, WorkVerdict};
    /// # fn adapter(store: &Store) -> impl outbox::CommitSession {
    /// store.with_work(|db| {
    ///     db.execute("INSERT INTO shop_invoice (number, cents) VALUES (?1, ?2)", ("A-1", 1_000))?;
    ///     Ok(WorkVerdict::Commit)
    /// })
    /// # }
    /// ```
    ///
    /// The work is not repeated if the session is committed already. It runs on the thread of the database, so it must
    /// not wait for anything else. It must not end the transaction.
    pub fn with_work(
        &self,
        work: impl Fn(&Connection) -> rusqlite::Result<WorkVerdict> + Send + Sync + 'static,
    ) -> WithWork {
        WithWork { store: self.clone(), work: Arc::new(work) }
    }

    /// Runs statements of the application in a separate transaction, for example to create its tables. Names of tables
    /// and indexes must begin with a prefix of the application, so that they never collide with those of this store.
    /// Triggers, views and virtual tables are not allowed: a database that contains them is refused when it is opened.
    ///
    /// # Errors
    /// Returns an error if a statement fails or creates one of these; in this case, nothing is stored.
    pub async fn transaction<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let doing = "running statements of the application".to_owned();
        self.change(Call::Application, doing, move |db| without_code(db, work)).await
    }
}

/// Runs work, and fails if it ends its transaction, or leaves a database that could not be opened again.
fn without_code<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, Fault> {
    let version = || db.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
    let before = version()?;
    let done = work(db);
    if db.is_autocommit() {
        return Err(Fault::EndedTransaction);
    }
    let done = done?;
    if version()? != before
        && let Some((kind, name)) = schema::code(db)?
    {
        return Err(Fault::Code { kind, name });
    }
    Ok(done)
}

#[async_trait]
impl CommitSession for WithWork {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let doing = format!("committing session {}", session.id);
        let (session, work) = (session.clone(), Arc::clone(&self.work));
        let commit = move |db: &Connection| {
            // Rolls the work back without failing the call.
            db.execute_batch("SAVEPOINT session_work")?;
            let outcome = sessions::commit_with(db, &session, Some(&|db| without_code(db, |db| work(db))))?;
            if outcome != CommitOutcome::Stored {
                db.execute_batch("ROLLBACK TO session_work")?;
            }
            db.execute_batch("RELEASE session_work")?;
            Ok::<_, Fault>(outcome)
        };
        self.store.change(Call::SessionCommit, doing, commit).await
    }
}
