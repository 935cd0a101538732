//! Faults of the server on demand, through its `failCommand` fail point.
//!
//! A server has a single such fail point for all clients. Therefore tests that use it take turns, also across
//! processes: a document in a collection of the server is the lock. Only commands of the client with the given name
//! fail.

use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{Acknowledgment, CollectionOptions, WriteConcern};
use mongodb::{Client, Collection};

/// An active fail point.
pub struct FailPoint {
    client: Client,
}

/// Age after which a lock counts as left by a killed test.
const STALE: Duration = Duration::from_secs(60);

impl FailPoint {
    /// Makes the next `times` commands with these names by the client `app_name` fail as `how` specifies: with
    /// `closeConnection`, `errorCode`, `writeConcernError` or `blockConnection`.
    pub async fn set(
        client: &Client,
        app_name: &str,
        times: i32,
        commands: &[&str],
        how: Document,
    ) -> Result<Self, Error> {
        lock(client).await?;
        let mut data = doc! { "failCommands": commands, "appName": app_name };
        data.extend(how);
        let on = doc! { "configureFailPoint": "failCommand", "mode": { "times": times }, "data": data };
        client.database("admin").run_command(on).await?;
        Ok(Self { client: client.clone() })
    }

    /// Leaves the fail point active, for a server that no other test uses.
    pub async fn leave(self) -> Result<(), Error> {
        locks(&self.client).delete_one(doc! { "_id": "failCommand" }).await.map(|_| ())
    }

    /// Deactivates the fail point.
    pub async fn off(self) -> Result<(), Error> {
        let off = doc! { "configureFailPoint": "failCommand", "mode": "off" };
        self.client.database("admin").run_command(off).await?;
        locks(&self.client).delete_one(doc! { "_id": "failCommand" }).await.map(|_| ())
    }
}

fn locks(client: &Client) -> Collection<Document> {
    let concern = WriteConcern::builder().w(Acknowledgment::Majority).build();
    let options = CollectionOptions::builder().write_concern(concern).build();
    client.database("test_locks").collection_with_options("locks", options)
}

async fn lock(client: &Client) -> Result<(), Error> {
    loop {
        let stale = DateTime::from_millis(DateTime::now().timestamp_millis() - STALE.as_millis() as i64);
        let locks = locks(client);
        locks.delete_one(doc! { "_id": "failCommand", "since": { "$lt": stale } }).await?;
        match locks.insert_one(doc! { "_id": "failCommand", "since": DateTime::now() }).await {
            Ok(_) => return Ok(()),
            Err(error) if is_taken(&error) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => return Err(error),
        }
    }
}

fn is_taken(error: &Error) -> bool {
    matches!(error.kind.as_ref(), ErrorKind::Write(WriteFailure::WriteError(error)) if error.code == 11000)
}
