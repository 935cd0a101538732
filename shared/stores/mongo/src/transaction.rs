//! Transactions: tried again for as long as they only meet others.

use std::time::Duration;

use async_trait::async_trait;
use mongodb::ClientSession;
use mongodb::error::{Error, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT};

use crate::Mongo;
use crate::fault::Fault;

/// How often a transaction is begun. In its own record and in its view it meets others once or twice in all; in a
/// record that many sessions read or write it may meet one each time, and one of two that meet goes on. Besides, after
/// a pause the first connection may be dead. Without a bound a failure that lasts would spin.
const MAX_TRANSACTIONS: u32 = 9;
/// How long to wait after the first transaction that met another; twice as long each time, 1.3 s in all. A transaction
/// takes some milliseconds until a majority has confirmed it, and whoever meets it is refused at once.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// How often a transaction is asked to commit, each time twice by the driver. Giving up has a price: it is
/// unknown whether it is committed; while it is not, whoever writes the same record waits until the server gives the
/// transaction up (`transactionLifetimeLimitSeconds`, 60 s).
const MAX_COMMITS: usize = 3;

/// What is to become of a transaction.
pub(crate) enum Step<T> {
    /// It is committed, and this is the answer.
    Commit(T),
    /// Nothing of it is stored, and this is the answer.
    Leave(T),
    /// Nothing of it is stored; the next one may go better.
    Again(Fault),
}

/// The work of a transaction, which may have to be done several times.
#[async_trait]
pub(crate) trait Work: Sync {
    type Answer: Send;

    /// Does it, within the session's transaction.
    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<Self::Answer>, Fault>;

    /// What follows from an answer with which nothing was stored: it need not be the last word.
    async fn left(&self, _: &Mongo, answer: Self::Answer) -> Result<Step<Self::Answer>, Fault> {
        Ok(Step::Leave(answer))
    }
}

/// Does the work in a transaction of its own.
pub(crate) async fn run<W: Work>(mongo: &Mongo, work: &W) -> Result<W::Answer, Fault> {
    let mut client = mongo.client().await?.start_session().await?;
    let mut earlier = 0;
    loop {
        let step = match once(mongo, &mut client, work).await? {
            Step::Leave(answer) => work.left(mongo, answer).await?,
            step => step,
        };
        match step {
            Step::Commit(answer) | Step::Leave(answer) => return Ok(answer),
            Step::Again(fault) if earlier + 1 == MAX_TRANSACTIONS => return Err(fault),
            Step::Again(_) => tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(earlier)).await,
        }
        earlier += 1;
    }
}

async fn once<W: Work>(
    mongo: &Mongo,
    client: &mut ClientSession,
    work: &W,
) -> Result<Step<W::Answer>, Fault> {
    client.start_transaction().await?;
    let step = match work.stage(mongo, client).await {
        Ok(Step::Commit(answer)) => commit(client).await.map(|()| Step::Commit(answer)).map_err(Fault::from),
        other => {
            // The next transaction of this session, or in the end its age, aborts it too; this is sooner.
            let _ = client.abort_transaction().await;
            other
        }
    };
    match step {
        Err(Fault::Driver(error)) if error.contains_label(TRANSIENT_TRANSACTION_ERROR) => {
            Ok(Step::Again(Fault::Driver(error)))
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
