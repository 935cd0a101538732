//! The collections of the application in the same database, written in the transaction of a session.

use std::sync::Arc;

use async_trait::async_trait;
use messages::StoreError;
use mongodb::{ClientSession, Database};
use outbox::session::WorkVerdict;
use outbox::{CommitOutcome, CommitSession, SessionRecord};

use crate::Mongo;
use crate::error::CallError;
use crate::sessions;
use crate::work::SessionWork;

/// Commits sessions together with the work of the application.
#[derive(Clone)]
pub struct WithWork {
    mongo: Mongo,
    work: Arc<dyn SessionWork>,
}

impl Mongo {
    /// Returns an adapter that commits a session together with `work`, in one transaction:
    ///
    /// ```no_run
    /// # use mongo::mongodb::bson::doc;
    /// # use mongo::mongodb::{ClientSession, Database, error::Error};
    /// # use mongo::{Mongo, SessionWork, WorkVerdict};
    /// struct Invoice {
    ///     number: String,
    /// }
    ///
    /// #[async_trait::async_trait]
    /// impl SessionWork for Invoice {
    ///     async fn run(&self, database: &Database, session: &mut ClientSession) -> Result<WorkVerdict, Error> {
    ///         let invoices = database.collection("shop_invoices");
    ///         invoices.insert_one(doc! { "_id": &self.number, "cents": 1_000 }).session(session).await?;
    ///         Ok(WorkVerdict::Commit)
    ///     }
    /// }
    ///
    /// # fn adapter(mongo: &Mongo) -> impl outbox::CommitSession {
    /// mongo.with_work(Invoice { number: "A-1".to_owned() })
    /// # }
    /// ```
    ///
    /// The work is not repeated if the session is committed already. The names of the application's collections begin
    /// with a prefix of the application, so that they never collide with those of this adapter.
    pub fn with_work(&self, work: impl SessionWork + 'static) -> WithWork {
        WithWork { mongo: self.clone(), work: Arc::new(work) }
    }

    /// Runs statements of the application in a separate transaction. [`WorkVerdict::Refuse`] rolls it back.
    ///
    /// # Errors
    /// Returns an error if a statement fails; nothing is stored then.
    pub async fn transaction(&self, work: &dyn SessionWork) -> Result<WorkVerdict, StoreError> {
        let run = async { crate::transaction::run(self, &Statements(work)).await };
        self.call("running statements of the application".to_owned(), run).await
    }

    /// Returns the database, for reads of the application's collections.
    pub async fn application_database(&self) -> Result<Database, StoreError> {
        self.call("connecting to the database".to_owned(), self.database()).await
    }
}

/// The work of an application in a separate transaction.
struct Statements<'a>(&'a dyn SessionWork);

#[async_trait]
impl crate::transaction::Work for Statements<'_> {
    type Answer = WorkVerdict;

    async fn stage(
        &self,
        mongo: &Mongo,
        client: &mut ClientSession,
    ) -> Result<crate::transaction::Step<WorkVerdict>, CallError> {
        use crate::transaction::Step;
        Ok(match self.0.run(&mongo.database().await?, client).await? {
            WorkVerdict::Commit => Step::Commit(WorkVerdict::Commit),
            WorkVerdict::Refuse => Step::Abort(WorkVerdict::Refuse),
        })
    }
}

#[async_trait]
impl CommitSession for WithWork {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let doing = format!("committing session {}", session.id);
        let commit = sessions::commit(&self.mongo, session, Some(self.work.as_ref()));
        self.mongo.call(doing, commit).await
    }
}
