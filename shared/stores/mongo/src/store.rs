//! What all ports share.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use messages::StoreError;
use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection, Database};

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
    client: Client,
    database: Database,
    call_timeout: Duration,
    saga_retention: SignedDuration,
    outbox_retention: SignedDuration,
    history_retention: SignedDuration,
}

impl fmt::Debug for Mongo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client knows the address, and the address the password.
        f.debug_struct("Mongo").field("database", &self.database.name()).finish_non_exhaustive()
    }
}

impl Mongo {
    /// Works with a client that is there already, without asking the server anything. The client must read and
    /// write with majority concern, as [`crate::connect::client_options`] has it.
    pub fn new(client: Client, settings: &Settings) -> Self {
        Self {
            database: client.database(&settings.database),
            client,
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
        let doing = format!("removing database {}", self.database.name());
        self.call(doing, async { Ok(self.database.drop().await?) }).await
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(name)
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
        Reply::read(&self.database.run_command(command).await?)
    }
}
