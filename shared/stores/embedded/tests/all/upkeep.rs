//! Expired data is deleted, and all other data is kept.

use contracts::sample;
use dedup::{GrantTokens, ProcessedMessages};
use embedded::{MAX_DECISIONS, PurgeReport};
use messages::{DecisionSink, SessionId};
use outbox::{Entry, Key, ReadRecords, SettleSessions, Write, WriteRecords};
use saga::{KeepHistory, Persist, PersistOutcome, ReadDocuments, WriteDocuments};

use crate::depot::{Depot, TestResult};
use crate::durability::observation;

#[tokio::test]
async fn purge_deletes_only_expired_data() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let (partition, now) = (sample::partition(host), sample::now(host));
    store.persist(&[sample::persist(partition, None, sample::ended(host, now))], now).await?;
    store.grant(partition, &[], now).await?;
    store.remember("parse:1", sample::later(now, 60)).await?;
    store.abandon(SessionId::from_uuid(uuid::Uuid::from_u128(1)), now).await?;
    let key = |id: &str| Key::new("sample", id);
    let (kept, expired) = (Write::new(key("kept"), 1), Write::new(key("expired"), 2).until(now));
    for write in [&kept, &expired, &Write::removal(key("removed"), now)] {
        store.write_record(write).await?;
    }
    assert_eq!(store.purge(now).await?, PurgeReport::default());
    let day = 24 * 3600;
    let week = PurgeReport { sagas: 1, sessions: 1, processed: 1, records: 2, ..PurgeReport::default() };
    assert_eq!(store.purge(sample::later(now, 7 * day + 1)).await?, week);
    assert!(store.record(&kept.key).await?.is_some());
    assert_eq!(store.stored_record(&expired.key).await?, None);
    let month = PurgeReport { partitions: 1, ..PurgeReport::default() };
    assert_eq!(store.purge(sample::later(now, 30 * day)).await?, month);
    Ok(())
}

#[tokio::test]
async fn expired_search_is_replaced_keeping_poison() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let (partition, now) = (sample::partition(host), sample::now(host));
    let exhausted = Entry { poisoned: true, ..sample::entry(host, partition, now)? };
    let ended = Persist {
        add: vec![exhausted.clone()],
        ..sample::persist(partition, None, sample::ended(host, now))
    };
    store.persist(&[ended], now).await?;
    let later = sample::later(now, 7 * 24 * 3600);
    assert_eq!(store.purge(later).await?.sagas, 0, "an exhausted entry is never deleted");
    assert_eq!(store.load(&[partition], later).await?.remove(0)?, None);
    let fresh = sample::persist(partition, None, sample::content(host, "fresh"));
    assert_eq!(
        store.persist(std::slice::from_ref(&fresh), now).await?,
        [PersistOutcome::Conflict],
        "too early"
    );
    assert_eq!(store.persist(&[fresh], later).await?, [PersistOutcome::Stored]);
    let document = store.load(&[partition], later).await?.remove(0)?.ok_or("it is stored")?;
    assert_eq!((document.version, document.outbox.as_slice()), (1, [exhausted].as_slice()));
    Ok(())
}

#[tokio::test]
async fn decision_log_keeps_latest_per_search() -> TestResult {
    let depot = Depot::new();
    let (partition, other) = (sample::partition(&*depot.host), sample::partition(&*depot.host));
    depot.store.observe(observation(other, 0));
    depot.store.observe(messages::DecisionRecord { partition: None, ..observation(other, 0) });
    let count = u32::try_from(MAX_DECISIONS)? + 10;
    for n in 0..count {
        depot.store.observe(observation(partition, n));
    }
    // Writes are made in order, so these observations are stored once this write is answered.
    depot.store.purge(sample::now(&*depot.host)).await?;
    let kept = depot.store.decisions(partition).await?;
    assert_eq!(kept.len(), MAX_DECISIONS);
    assert_eq!(kept.first().map(|it| it.why.as_str()), Some("decision 10"));
    assert_eq!(kept.last(), Some(&observation(partition, count - 1).into()));
    assert_eq!(depot.store.decisions(other).await?.len(), 1);
    assert_eq!(depot.store.history(None, None, 10).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn disabled_history_keeps_no_decisions() -> TestResult {
    let folder = tempfile::TempDir::new()?;
    let host = std::sync::Arc::new(contracts::ManualHost::seeded(1));
    let settings = embedded::Settings { history: false, ..embedded::Settings::new(&imports::queues::QUEUES) };
    let store = embedded::Store::open(folder.path(), host.clone(), settings)?;
    let partition = sample::partition(&*host);
    store.observe(observation(partition, 0));
    store.purge(sample::now(&*host)).await?;
    assert_eq!(store.decisions(partition).await?, []);
    Ok(())
}
