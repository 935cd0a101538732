//! Indexes and expiry. The server's TTL monitor should run often (`ttlMonitorSleepSecs=1`); with the default of a
//! minute the tests are slow but pass.

use std::time::Duration;

use backend::SystemHost;
use contracts::outboxes;
use contracts::sample;
use futures::TryStreamExt;
use imports::{Progress, ReportProgress};
use jiff::SignedDuration;
use mongo::{Mongo, OnDifference, Outcome, Settings, collections};
use mongodb::bson::{Bson, Document, doc};
use outbox::{CommitSession, Entry, SessionRecord, SettleSessions, Settlement};
use saga::{KeepHistory, Persist, WriteDocuments};
use servers::mongo::{eventually, uri};
use testing::search as samples;

use super::{Scratch, Setup, TestResult};

const HOST: &SystemHost = &SystemHost;
const TIMEOUT: Duration = Duration::from_secs(130);

fn brief() -> Setup {
    Setup { retention: SignedDuration::from_secs(1), ..Setup::default() }
}

async fn count(scratch: &Scratch, name: &str) -> Result<u64, mongodb::error::Error> {
    scratch.collection(name).count_documents(doc! {}).await
}

#[tokio::test]
async fn document_expires_after_end_with_empty_outbox() -> TestResult {
    let scratch = Scratch::with(&uri(), brief()).await?;
    let now = sample::now(HOST);
    let persist = |content| sample::persist(sample::partition(HOST), None, content);
    let running = persist(sample::content(HOST, "running"));
    let ended = persist(sample::ended(HOST, now));
    let unsent = |entry: Entry| Persist { add: vec![entry], ..persist(sample::ended(HOST, now)) };
    let waiting = unsent(sample::entry(HOST, ended.partition, now)?);
    let exhausted = unsent(Entry { poisoned: true, ..sample::entry(HOST, ended.partition, now)? });
    let entry = waiting.add[0].clone();
    let waiting_for = waiting.partition;
    scratch.mongo.persist(&[running, ended, waiting, exhausted], now).await?;
    eventually("the ended one is deleted", TIMEOUT, async || {
        Ok::<_, mongodb::error::Error>(count(&scratch, collections::SAGA).await? == 3)
    })
    .await?;
    let done = Settlement { id: entry.id, claim: None, keep: None };
    scratch.mongo.settle(&[(waiting_for, vec![done])]).await?;
    // The monitor deletes this document and keeps the other two.
    eventually("settled records are deleted", TIMEOUT, async || {
        Ok::<_, mongodb::error::Error>(count(&scratch, collections::SAGA).await? == 2)
    })
    .await?;
    let left: Vec<Document> =
        scratch.collection(collections::SAGA).find(doc! {}).await?.try_collect().await?;
    let exhausted = left.iter().filter(|document| document.contains_key("CompletedAt")).count();
    assert_eq!((left.len(), exhausted), (2, 1), "{left:?}");
    scratch.end().await
}

#[tokio::test]
async fn session_progress_and_history_records_expire() -> TestResult {
    let scratch = Scratch::with(&uri(), brief()).await?;
    let (store, now) = (&scratch.mongo, sample::now(HOST));
    let search = sample::partition(HOST);
    let session = |entries| SessionRecord {
        id: messages::SessionId::from_uuid(messages::Host::fresh_id(HOST)),
        entries,
        views: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        committed_at: now,
    };
    let (sent, unsent) =
        (session(vec![sample::entry(HOST, search, now)?]), session(vec![sample::entry(HOST, search, now)?]));
    for record in [&sent, &unsent] {
        store.commit(record).await?;
    }
    let (sweep, owner) = (store.session_outbox(), outbox::Owner::Session(sent.id));
    for entry in outboxes::claim(&sweep, owner, now, sample::later(now, 60)).await? {
        let done = Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
        outboxes::settle(&sweep, owner, &[done]).await?;
    }
    store.abandon(messages::SessionId::from_uuid(messages::Host::fresh_id(HOST)), now).await?;
    store.report(search, samples::file(HOST), Progress { records: 1, bytes: 1 }).await?;
    store.append(&[contracts::history::observation(HOST, search, 0, 0)]).await?;
    eventually("they are deleted", TIMEOUT, async || {
        let mut left = Vec::new();
        for name in [collections::SESSION, collections::PROGRESS, collections::HISTORY] {
            left.push(count(&scratch, name).await?);
        }
        Ok::<_, mongodb::error::Error>(left == [1, 0, 0])
    })
    .await?;
    assert_eq!(store.find(unsent.id).await?, outbox::session::SessionStatus::Committed);
    scratch.end().await
}

async fn ttl(scratch: &Scratch) -> Result<Document, Box<dyn std::error::Error + Send + Sync>> {
    let command = doc! { "listIndexes": collections::SAGA };
    let indexes: Vec<Document> = scratch.database.run_cursor_command(command).await?.try_collect().await?;
    let named = |index: &Document| index.get_str("name").is_ok_and(|name| name == "ttl_CompletedAt_7d");
    indexes.into_iter().find(named).ok_or_else(|| "there is no ttl_CompletedAt_7d".into())
}

#[tokio::test]
async fn changed_index_is_reported_before_rebuild() -> TestResult {
    let scratch = Scratch::with(&uri(), Setup { indexed: false, ..Setup::default() }).await?;
    let outcomes = async |mongo: &Mongo, flag| -> Result<Vec<Outcome>, messages::StoreError> {
        Ok(mongo.ensure_indexes(flag).await?.indexes.into_iter().map(|index| index.outcome).collect())
    };
    let built = outcomes(&scratch.mongo, OnDifference::Report).await?;
    assert!(built.len() == 36 && built.iter().all(|outcome| *outcome == Outcome::Created), "{built:?}");
    scratch.commands();
    let again = outcomes(&scratch.mongo, OnDifference::Report).await?;
    assert!(again.iter().all(|outcome| *outcome == Outcome::Present), "{again:?}");
    assert_eq!(scratch.commands(), ["listIndexes"; 15], "a cold start only looks");
    let index = ttl(&scratch).await?;
    assert_eq!(index.get("expireAfterSeconds"), Some(&Bson::Int32(604_800)));
    assert_eq!(index.get_document("key")?, &doc! { "CompletedAt": 1 });

    let minute = SignedDuration::from_secs(60);
    let settings = Settings { saga_retention: minute, outbox_retention: minute, ..scratch.settings.clone() };
    let other = Mongo::new(scratch.database.client().clone(), &settings);
    let report = other.ensure_indexes(OnDifference::Report).await?;
    let named: Vec<String> =
        report.differences().map(|index| format!("{}.{}", index.collection, index.name)).collect();
    assert_eq!(
        named,
        [
            "pmSearchImportJobState.ttl_CompletedAt_7d",
            "pmSearchImportProgress.ttl_ReportedAt",
            "pmOutbox.ttl_At"
        ]
    );
    assert!(report.differences().all(|index| index.to_string().contains("604800")), "it says what is there");
    assert_eq!(ttl(&scratch).await?.get("expireAfterSeconds"), Some(&Bson::Int32(604_800)), "and leaves it");

    let rebuilt = other.ensure_indexes(OnDifference::Rebuild).await?;
    let of_rebuilt = rebuilt.indexes.iter().filter(|index| matches!(index.outcome, Outcome::Rebuilt(_)));
    assert_eq!(of_rebuilt.count(), 3);
    assert_eq!(ttl(&scratch).await?.get("expireAfterSeconds"), Some(&Bson::Int32(60)));
    assert_eq!(other.ensure_indexes(OnDifference::Report).await?.differences().count(), 0);
    scratch.end().await
}

/// Many functions build the indexes concurrently, for example when they start at once on an empty database.
#[tokio::test]
async fn indexes_can_be_built_concurrently() -> TestResult {
    let scratch = Scratch::with(&uri(), Setup { indexed: false, ..Setup::default() }).await?;
    let all = (0..8).map(|_| scratch.mongo.ensure_indexes(OnDifference::Report));
    for migration in futures::future::join_all(all).await {
        assert_eq!(migration?.differences().count(), 0);
    }
    scratch.end().await
}
