//! What all ports share.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::SignedDuration;
use messages::StoreError;
use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection, Database};
use tokio::sync::OnceCell;

use crate::fault::Fault;
use crate::names::collections;
use crate::outbox::Outbox;
use crate::pipeline::Statement;
use crate::reply::Reply;
use crate::settings::Settings;

/// A database. It implements the ports of sagas, views, progress, studies, sessions, records and history; a copy is cheap and shares
/// the connections.
#[derive(Clone)]
pub struct Mongo {
    link: Arc<Link>,
    database: String,
    call_timeout: Duration,
    saga_retention: SignedDuration,
    outbox_retention: SignedDuration,
    history_retention: SignedDuration,
}

/// Connects to the database. Each call is another attempt.
pub type Connect =
    Box<dyn Fn() -> BoxFuture<'static, Result<Client, Box<dyn Error + Send + Sync>>> + Send + Sync>;

/// The connection to the database.
enum Link {
    /// There was one at the beginning.
    Made(Client),
    /// The first call that needs it makes it.
    Awaited { client: OnceCell<Client>, connect: Connect },
}

impl fmt::Debug for Mongo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client knows the address, and the address the password.
        f.debug_struct("Mongo").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Mongo {
    /// Works with a client that is there already, without asking the server anything. The client must read and
    /// write with majority concern, as [`crate::connect::client_options`] has it.
    pub fn new(client: Client, settings: &Settings) -> Self {
        Self::over(Link::Made(client), settings)
    }

    /// Connects at the first call. As long as that fails, each call fails with a retryable error, and the next call tries
    /// again. It is for a program that starts while the database is unavailable.
    pub fn connecting(connect: Connect, settings: &Settings) -> Self {
        Self::over(Link::Awaited { client: OnceCell::new(), connect }, settings)
    }

    fn over(link: Link, settings: &Settings) -> Self {
        Self {
            link: Arc::new(link),
            database: settings.database.clone(),
            call_timeout: settings.call_timeout,
            saga_retention: settings.saga_retention,
            outbox_retention: settings.outbox_retention,
            history_retention: settings.history_retention,
        }
    }

    /// The outboxes of all sagas.
    pub fn saga_outbox(&self) -> Outbox {
        Outbox::new(self.clone(), collections::SAGA)
    }

    /// The outboxes of all committed sessions.
    pub fn session_outbox(&self) -> Outbox {
        Outbox::new(self.clone(), collections::SESSION)
    }

    /// Removes the database and everything in it: for a program that made one for a while.
    ///
    /// # Errors
    /// When the server does not answer, or forbids it.
    pub async fn drop_database(&self) -> Result<(), StoreError> {
        let doing = format!("removing database {}", self.database);
        self.call(doing, async { Ok(self.database().await?.drop().await?) }).await
    }

    pub(crate) async fn client(&self) -> Result<&Client, Fault> {
        match &*self.link {
            Link::Made(client) => Ok(client),
            Link::Awaited { client, connect } => {
                client.get_or_try_init(|| async { connect().await.map_err(Fault::NotConnected) }).await
            }
        }
    }

    pub(crate) async fn database(&self) -> Result<Database, Fault> {
        Ok(self.client().await?.database(&self.database))
    }

    pub(crate) async fn collection(&self, name: &str) -> Result<Collection<Document>, Fault> {
        Ok(self.database().await?.collection(name))
    }

    /// How long the document of a saga that has ended stays.
    pub fn saga_retention(&self) -> SignedDuration {
        self.saga_retention
    }

    pub(crate) fn outbox_retention(&self) -> SignedDuration {
        self.outbox_retention
    }

    pub(crate) fn history_retention(&self) -> SignedDuration {
        self.history_retention
    }

    /// Waits for one piece of work, for a limited time.
    pub(crate) async fn call<T>(
        &self,
        doing: String,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.call_timeout, work).await {
            Ok(answer) => answer.map_err(|fault| fault.while_doing(doing)),
            Err(_) => Err(Fault::NoAnswer(self.call_timeout).while_doing(doing)),
        }
    }

    /// Sends statements as one command, each applied whatever becomes of the others. Not the driver's
    /// `bulk_write`, which needs MongoDB 8. A command that is run like this is not repeated by the driver, and
    /// carries its own write concern.
    pub(crate) async fn update(&self, collection: &str, statements: Vec<Statement>) -> Result<Reply, Fault> {
        let updates: Vec<Document> = statements.into_iter().map(Statement::into_document).collect();
        let command = doc! {
            "update": collection,
            "updates": updates,
            "ordered": false,
            "writeConcern": { "w": "majority" },
        };
        Reply::read(&self.database().await?.run_command(command).await?)
    }
}
