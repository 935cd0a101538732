//! Transactions of sessions that meet conflicts, cuts and silence: both record and data, or neither.

use std::time::Duration;

use contracts::{Host, JobState, SearchId, SessionId, StoreError};
use imports::{ReadJobs, Write};
use mongodb::bson::doc;
use outbox::session::Found;
use outbox::{CommitSession, Committed, SessionRecord, SettleSessions};
use servers::mongo::{OwnServer, eventually};
use testing::sample;
use worker::SystemHost;

use super::faults::unknown;
use super::{Scratch, Setup, Tested};

const HOST: &SystemHost = &SystemHost;

struct Prepared {
    record: SessionRecord,
    search: SearchId,
    writes: Vec<Write>,
}

impl Prepared {
    fn new() -> Self {
        let (search, now) = (sample::search(HOST), sample::now(HOST));
        let entries = vec![sample::entry(HOST, search, now).unwrap()];
        let job = sample::job(HOST, search, 0, JobState::Uploading);
        let record = SessionRecord { id: SessionId::from_uuid(HOST.fresh_id()), entries, committed_at: now };
        Self { record, search, writes: vec![Write::CreateJob(Box::new(job))] }
    }

    /// Whether the record is there, and the job.
    async fn stored(&self, scratch: &Scratch) -> Result<(Found, bool), StoreError> {
        Ok((scratch.mongo.find(self.record.id).await?, scratch.mongo.job(self.search).await?.is_some()))
    }
}

#[tokio::test]
async fn a_transaction_that_meets_a_conflict_or_a_cut_is_repeated() -> Tested {
    let scratch = Scratch::new().await?;
    let conflict = doc! { "errorCode": 112, "errorLabels": ["TransientTransactionError"] };
    let cut = doc! { "closeConnection": true };
    let faults = [
        ("insert", conflict.clone()),
        ("update", conflict.clone()),
        ("commitTransaction", conflict),
        ("commitTransaction", cut),
    ];
    for (command, how) in faults {
        let session = Prepared::new();
        let fault = scratch.fail(1, &[command], how).await?;
        assert_eq!(
            scratch.mongo.commit(&session.record, &session.writes).await?,
            Committed::Stored,
            "{command}"
        );
        fault.off().await?;
        assert_eq!(session.stored(&scratch).await?, (Found::Committed, true), "{command}");
    }
    scratch.end().await
}

#[tokio::test]
async fn a_transaction_that_cannot_be_made_leaves_neither_record_nor_data() -> Tested {
    let scratch = Scratch::new().await?;
    for command in ["insert", "update"] {
        let session = Prepared::new();
        let fault = scratch.fail(100, &[command], doc! { "closeConnection": true }).await?;
        unknown(scratch.mongo.commit(&session.record, &session.writes).await);
        fault.off().await?;
        assert_eq!(session.stored(&scratch).await?, (Found::Nothing, false), "{command}");
        assert_eq!(scratch.mongo.bury(session.record.id, sample::now(HOST)).await?, Found::Tombstone);
        let late = scratch.mongo.commit(&session.record, &session.writes).await?;
        assert_eq!((late, session.stored(&scratch).await?), (Committed::TooLate, (Found::Tombstone, false)));
    }
    scratch.end().await
}

/// As when a function is killed before its commit arrives. Until the server gives the transaction up the session can
/// neither be found nor be buried, and nobody is told otherwise.
#[tokio::test]
async fn a_transaction_that_is_left_open_is_neither_stored_nor_buried_until_the_server_gives_it_up() -> Tested
{
    let server = OwnServer::replica_set(&["transactionLifetimeLimitSeconds=3"]).await?;
    let setup = Setup { call_timeout: Duration::from_secs(1), ..Setup::default() };
    let scratch = Scratch::with(&server.uri(), setup).await?;
    let session = Prepared::new();
    let fault = scratch.fail(100, &["commitTransaction"], doc! { "closeConnection": true }).await?;
    unknown(scratch.mongo.commit(&session.record, &session.writes).await);
    fault.off().await?;
    assert_eq!(session.stored(&scratch).await?, (Found::Nothing, false));
    unknown(scratch.mongo.bury(session.record.id, sample::now(HOST)).await);
    eventually("the session is buried", Duration::from_secs(30), async || {
        match scratch.mongo.bury(session.record.id, sample::now(HOST)).await {
            Ok(found) => Ok(found == Found::Tombstone),
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await?;
    assert_eq!(scratch.mongo.commit(&session.record, &session.writes).await?, Committed::TooLate);
    assert_eq!(session.stored(&scratch).await?, (Found::Tombstone, false));
    Ok(())
}

#[tokio::test]
async fn a_commit_that_no_majority_confirmed_is_unknown_and_repeating_it_finds_it_stored() -> Tested {
    let scratch = Scratch::new().await?;
    let session = Prepared::new();
    let how = doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    let fault = scratch.fail(100, &["commitTransaction"], how).await?;
    unknown(scratch.mongo.commit(&session.record, &session.writes).await);
    fault.off().await?;
    assert_eq!(session.stored(&scratch).await?, (Found::Committed, true));
    assert_eq!(scratch.mongo.commit(&session.record, &session.writes).await?, Committed::Stored);
    scratch.end().await
}
