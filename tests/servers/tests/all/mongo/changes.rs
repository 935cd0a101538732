//! The change feed during transactions.

use std::time::Duration;

use backend::SystemHost;
use contracts::sample;
use futures::future::try_join;
use messages::{Host, SessionId};
use mongodb::bson::doc;
use outbox::{CommitOutcome, CommitSession, ReadViews, SessionRecord, View, WriteViews};
use servers::mongo::eventually;

use super::{Scratch, TestResult};

const HOST: &SystemHost = &SystemHost;

/// The transaction's view has the smaller revision and becomes visible after the other one.
#[tokio::test]
async fn change_feed_finds_late_transactions() -> TestResult {
    let scratch = Scratch::new().await?;
    let (store, list) = (&scratch.mongo, HOST.fresh_id());
    let view = || View { list, ..sample::view(HOST, sample::partition(HOST), 0, true) };
    let (early, late) = (view(), view());
    let session = SessionRecord {
        id: SessionId::from_uuid(HOST.fresh_id()),
        entries: Vec::new(),
        views: vec![early.clone()],
        reads: Vec::new(),
        writes: Vec::new(),
        committed_at: sample::now(HOST),
    };
    let block = doc! { "blockConnection": true, "blockTimeMS": 3_000 };
    let fault = scratch.fail(1, &["commitTransaction"], block).await?;
    scratch.commands();
    let meanwhile = async {
        eventually("it is being committed", Duration::from_secs(30), async || {
            Ok::<_, messages::StoreError>(scratch.commands().contains(&"commitTransaction".to_owned()))
        })
        .await?;
        store.write(std::slice::from_ref(&late)).await?;
        store.changed(list, 0, None, 10).await
    };
    let (committed, found) = try_join(store.commit(&session), meanwhile).await?;
    fault.off().await?;
    let [(place, found)] = found.try_into().expect("one");
    assert_eq!((committed, found), (CommitOutcome::Stored, late));
    assert_eq!(store.changed(list, place.at, None, 10).await?, [], "it has the smaller number");
    let again = store.changed(list, store.settled(place.at), None, 10).await?;
    let partitions: Vec<_> = again.iter().map(|(place, _)| place.partition).collect();
    assert_eq!(partitions, [early.partition, place.partition]);
    scratch.end().await
}
