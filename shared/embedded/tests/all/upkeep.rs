//! What is deleted in time, and what is not.

use contracts::{Observe, SessionId};
use dedup::{GrantTokens, RememberProcessed};
use embedded::{MAX_DECISIONS, Purged};
use outbox::{Entry, SettleSessions};
use testing::sample;
use worker::document::{Persist, Persisted, ReadSaga, WriteSaga};

use crate::depot::{Depot, Tested};
use crate::durability::observation;

#[tokio::test]
async fn what_has_expired_is_deleted_and_nothing_earlier() -> Tested {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let (search, now) = (sample::search(host), sample::now(host));
    store.persist(&[sample::persist(search, None, sample::ended(host, now))], now).await?;
    store.grant(search, &[], now).await?;
    store.remember("parse:1", sample::later(now, 60)).await?;
    store.bury(SessionId::from_uuid(uuid::Uuid::from_u128(1)), now).await?;
    assert_eq!(store.purge(now).await?, Purged::default());
    let day = 24 * 3600;
    let week = Purged { sagas: 1, sessions: 1, processed: 1, ..Purged::default() };
    assert_eq!(store.purge(sample::later(now, 7 * day)).await?, week);
    let month = Purged { partitions: 1, ..Purged::default() };
    assert_eq!(store.purge(sample::later(now, 30 * day)).await?, month);
    Ok(())
}

#[tokio::test]
async fn an_expired_search_gives_way_to_a_new_one_and_poison_outlives_both() -> Tested {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let (search, now) = (sample::search(host), sample::now(host));
    let poisoned = Entry { poisoned: true, ..sample::entry(host, search, now)? };
    let ended =
        Persist { add: vec![poisoned.clone()], ..sample::persist(search, None, sample::ended(host, now)) };
    store.persist(&[ended], now).await?;
    let later = sample::later(now, 7 * 24 * 3600);
    assert_eq!(store.purge(later).await?.sagas, 0, "a poisoned entry is never deleted");
    assert_eq!(store.load(&[search], later).await?, [None]);
    let fresh = sample::persist(search, None, sample::uploading(host, "fresh"));
    assert_eq!(store.persist(std::slice::from_ref(&fresh), now).await?, [Persisted::Conflict], "too early");
    assert_eq!(store.persist(&[fresh], later).await?, [Persisted::Stored]);
    let documents = store.load(&[search], later).await?;
    let document = documents.first().and_then(Option::as_ref).ok_or("it is stored")?;
    assert_eq!((document.version, document.outbox.as_slice()), (1, [poisoned].as_slice()));
    Ok(())
}

#[tokio::test]
async fn the_decision_log_keeps_the_latest_of_each_search_in_order() -> Tested {
    let depot = Depot::new();
    let (search, other) = (sample::search(&*depot.host), sample::search(&*depot.host));
    depot.store.observe(observation(other, 0));
    depot.store.observe(contracts::Observation { search_id: None, ..observation(other, 0) });
    let count = u32::try_from(MAX_DECISIONS)? + 10;
    for n in 0..count {
        depot.store.observe(observation(search, n));
    }
    // Writes are made in order, so these observations are stored once this write is answered.
    depot.store.purge(sample::now(&*depot.host)).await?;
    let kept = depot.store.decisions(search).await?;
    assert_eq!(kept.len(), MAX_DECISIONS);
    assert_eq!(kept.first().map(|it| it.why.as_str()), Some("decision 10"));
    assert_eq!(kept.last(), Some(&observation(search, count - 1)));
    assert_eq!(depot.store.decisions(other).await?.len(), 1);
    assert_eq!(depot.store.decisions_of_no_search().await?.len(), 1);
    Ok(())
}
