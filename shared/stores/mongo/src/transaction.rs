//! Transactions, with retries after conflicts.

use std::time::Duration;

use async_trait::async_trait;
use mongodb::ClientSession;
use mongodb::error::{Error, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT};

use crate::Mongo;
use crate::error::CallError;

/// Maximum number of attempts of a transaction. Conflicts in a session's own record or its view happen once or twice at
/// most. In a record that many sessions access, each attempt may conflict, although one of two conflicting transactions
/// always proceeds. The first connection may also be closed after an idle period. The limit stops retries of a
/// permanent failure.
const MAX_TRANSACTIONS: u32 = 9;
/// Pause after the first conflict. The delay doubles after each further conflict, to 1.3 s in total. A transaction
/// takes a few milliseconds until a majority confirms it, and a conflicting one fails at once.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Maximum number of commit requests of a transaction; the driver sends each one twice. If all fail, the outcome is
/// unknown. If the transaction is still open, writers of the same records are blocked until the server aborts it
/// (`transactionLifetimeLimitSeconds`, 60 s).
const MAX_COMMITS: usize = 3;

/// End of a transaction.
pub(crate) enum Step<T> {
    /// Commit the transaction and return this answer.
    Commit(T),
    /// Abort the transaction and return this answer.
    Abort(T),
    /// Abort the transaction and repeat it, because of this error.
    Retry(CallError),
}

/// Reads and writes of a transaction, which may be repeated.
#[async_trait]
pub(crate) trait Work: Sync {
    type Answer: Send;

    /// Executes the reads and writes in the session's transaction.
    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession)
    -> Result<Step<Self::Answer>, CallError>;

    /// Revises the answer of an aborted transaction.
    async fn after_abort(&self, _: &Mongo, answer: Self::Answer) -> Result<Step<Self::Answer>, CallError> {
        Ok(Step::Abort(answer))
    }
}

/// Executes the work in a transaction, and repeats it after conflicts.
pub(crate) async fn run<W: Work>(mongo: &Mongo, work: &W) -> Result<W::Answer, CallError> {
    let mut client = mongo.client().await?.start_session().await?;
    let mut earlier = 0;
    loop {
        let step = match once(mongo, &mut client, work).await? {
            Step::Abort(answer) => work.after_abort(mongo, answer).await?,
            step => step,
        };
        match step {
            Step::Commit(answer) | Step::Abort(answer) => return Ok(answer),
            Step::Retry(error) if earlier + 1 == MAX_TRANSACTIONS => return Err(error),
            Step::Retry(_) => tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(earlier)).await,
        }
        earlier += 1;
    }
}

async fn once<W: Work>(
    mongo: &Mongo,
    client: &mut ClientSession,
    work: &W,
) -> Result<Step<W::Answer>, CallError> {
    client.start_transaction().await?;
    let step = match work.stage(mongo, client).await {
        Ok(Step::Commit(answer)) => {
            commit(client).await.map(|()| Step::Commit(answer)).map_err(CallError::from)
        }
        other => {
            // An error is ignored: the next transaction of this session or the server's time limit aborts it too.
            let _ = client.abort_transaction().await;
            other
        }
    };
    match step {
        Err(CallError::Driver(error)) if error.contains_label(TRANSIENT_TRANSACTION_ERROR) => {
            Ok(Step::Retry(CallError::Driver(error)))
        }
        step => step,
    }
}

async fn commit(client: &mut ClientSession) -> Result<(), Error> {
    let mut commits = 1;
    loop {
        match client.commit_transaction().await {
            Err(error)
                if commits < MAX_COMMITS && error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) =>
            {
                commits += 1;
            }
            ended => return ended,
        }
    }
}
