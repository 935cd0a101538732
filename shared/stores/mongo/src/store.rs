//! The database handle that all ports use.

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

use crate::connect::{self, ConnectError};
use crate::error::CallError;
use crate::names::collection_name;
use crate::pipeline::Statement;
use crate::reply::Reply;
use crate::settings::Settings;

/// A database. It implements the ports of sagas, views, progress, studies, sessions, records and history. Clones are
/// cheap and share the connections.
#[derive(Clone)]
pub struct Mongo {
    connection: Arc<Connection>,
    system: Arc<str>,
    database: String,
    call_timeout: Duration,
    saga_retention: SignedDuration,
    outbox_retention: SignedDuration,
    history_retention: SignedDuration,
}

/// Function that connects to the database. Each call is a new attempt.
pub type Connect =
    Box<dyn Fn() -> BoxFuture<'static, Result<Client, Box<dyn Error + Send + Sync>>> + Send + Sync>;

/// The connection to the database.
enum Connection {
    /// A client that exists from the beginning.
    Ready(Client),
    /// A client that the first call creates.
    Lazy { client: OnceCell<Client>, connect: Connect },
}

impl fmt::Debug for Mongo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Exclude the client, because its address may contain the password.
        f.debug_struct("Mongo").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Mongo {
    /// Connects, and checks with one request that the server supports transactions.
    ///
    /// # Errors
    /// Returns an error that names the setting to change.
    pub async fn connect(settings: &Settings) -> Result<Self, ConnectError> {
        Ok(Self::new(connect::client(settings).await?, settings))
    }

    /// Uses an existing client and sends no request. The client must read and write with majority concern, as the
    /// options of [`crate::connect::client_options`] do.
    pub fn new(client: Client, settings: &Settings) -> Self {
        Self::with_connection(Connection::Ready(client), settings)
    }

    /// Connects at the first call. While the connection fails, each call returns a retryable error and the next call
    /// tries again. A program can thus start while the database is unavailable.
    pub fn connecting(connect: Connect, settings: &Settings) -> Self {
        Self::with_connection(Connection::Lazy { client: OnceCell::new(), connect }, settings)
    }

    fn with_connection(connection: Connection, settings: &Settings) -> Self {
        Self {
            connection: Arc::new(connection),
            system: settings.system.as_str().into(),
            database: settings.database.clone(),
            call_timeout: settings.call_timeout,
            saga_retention: settings.saga_retention,
            outbox_retention: settings.outbox_retention,
            history_retention: settings.history_retention,
        }
    }

    /// Deletes the database with all data, for programs that use a temporary one.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable or denies the operation.
    pub async fn drop_database(&self) -> Result<(), StoreError> {
        let doing = format!("deleting database {}", self.database);
        self.call(doing, async { Ok(self.database().await?.drop().await?) }).await
    }

    pub(crate) async fn client(&self) -> Result<&Client, CallError> {
        match &*self.connection {
            Connection::Ready(client) => Ok(client),
            Connection::Lazy { client, connect } => {
                client.get_or_try_init(|| async { connect().await.map_err(CallError::NotConnected) }).await
            }
        }
    }

    pub(crate) async fn database(&self) -> Result<Database, CallError> {
        Ok(self.client().await?.database(&self.database))
    }

    /// Returns a collection of [`crate::collections`].
    pub(crate) async fn collection(&self, collection: &str) -> Result<Collection<Document>, CallError> {
        Ok(self.database().await?.collection(&self.name_of(collection)))
    }

    /// Returns the name of a collection of [`crate::collections`] in this database.
    pub(crate) fn name_of(&self, collection: &str) -> String {
        collection_name(&self.system, collection)
    }

    /// Converts an error of this database to the error of a port.
    pub(crate) fn error(&self, error: CallError, doing: impl Into<String>) -> StoreError {
        error.of_system(&self.system).while_doing(doing)
    }

    pub(crate) fn system(&self) -> &str {
        &self.system
    }

    /// Returns the retention of the documents of ended sagas.
    pub fn saga_retention(&self) -> SignedDuration {
        self.saga_retention
    }

    pub(crate) fn outbox_retention(&self) -> SignedDuration {
        self.outbox_retention
    }

    pub(crate) fn history_retention(&self) -> SignedDuration {
        self.history_retention
    }

    /// Runs one call with the time limit.
    pub(crate) async fn call<T>(
        &self,
        doing: String,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.call_timeout, work).await {
            Ok(answer) => answer.map_err(|error| self.error(error, doing)),
            Err(_) => Err(CallError::Timeout(self.call_timeout).while_doing(doing)),
        }
    }

    /// Sends statements as one command, which applies them independently of each other. The driver's `bulk_write` is
    /// not used, because it requires MongoDB 8. The driver does not retry such a command, and the command needs an
    /// explicit write concern.
    pub(crate) async fn update(
        &self,
        collection: &str,
        statements: Vec<Statement>,
    ) -> Result<Reply, CallError> {
        let updates: Vec<Document> = statements.into_iter().map(Statement::into_document).collect();
        let command = doc! {
            "update": self.name_of(collection),
            "updates": updates,
            "ordered": false,
            "writeConcern": { "w": "majority" },
        };
        Reply::read(&self.database().await?.run_command(command).await?)
    }
}
