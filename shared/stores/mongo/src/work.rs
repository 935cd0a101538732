//! The statements of an application, which run in a transaction of the adapter.

use async_trait::async_trait;
use mongodb::error::Error;
use mongodb::{ClientSession, Database};
use outbox::session::WorkVerdict;

/// The work of an application in the transaction of a session.
#[async_trait]
pub trait SessionWork: Send + Sync {
    /// Reads and writes the application's collections. Every operation must be run in `session`, otherwise it is not
    /// part of the transaction. The transaction is neither committed nor aborted here. After a conflict with another
    /// transaction the work is repeated from the beginning, so it must not have any other effect.
    ///
    /// # Errors
    /// Returns the error of the driver; nothing is stored then.
    async fn run(&self, database: &Database, session: &mut ClientSession) -> Result<WorkVerdict, Error>;
}
