//! Studies beyond the contract suite: a rejected study is not mistaken for an existing one.

use backend::SystemHost;
use contracts::sample;
use futures::future::try_join3;
use imports::duplicates::Fields;
use imports::{CompareStudies, FileFence, FileId, ParseAttempts, ReadStudies, SearchId, WriteStudies};
use mongo::collections;
use mongodb::bson::{Bson, doc};
use testing::search as samples;

use super::faults::unknown;
use super::{Scratch, TestResult};

const HOST: &SystemHost = &SystemHost;

async fn begin(
    scratch: &Scratch,
    search_id: SearchId,
    file_id: FileId,
) -> Result<FileFence, messages::StoreError> {
    let fence = scratch.mongo.start(search_id, file_id, 1).await?.fence;
    Ok(FileFence { search_id, file_id, fence })
}

#[tokio::test]
async fn studies_without_majority_are_not_confirmed() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search, file) = (sample::partition(HOST), samples::file(HOST));
    let held = begin(&scratch, search, file).await?;
    let studies: Vec<_> = (1..=10).map(|record| samples::study(search, file, record)).collect();
    scratch.mongo.store(&held, studies[..5].to_vec(), vec![]).await?;
    let how = doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    let fault = scratch.fail(20, &["commitTransaction"], how).await?;
    unknown(scratch.mongo.store(&held, studies.clone(), vec![]).await);
    fault.off().await?;
    scratch.mongo.store(&held, studies.clone(), vec![]).await?;
    assert_eq!(scratch.mongo.studies(search, file, 0, 100).await?, studies);
    scratch.end().await
}

#[tokio::test]
async fn interrupted_store_is_repeated_without_duplicates() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search, file) = (sample::partition(HOST), samples::file(HOST));
    let held = begin(&scratch, search, file).await?;
    let studies: Vec<_> = (1..=1_500).map(|record| samples::study(search, file, record)).collect();
    let unread: Vec<_> = (1_501..=1_600).map(|number| samples::quarantined(search, file, number)).collect();
    let fault = scratch.fail(100, &["insert"], doc! { "closeConnection": true }).await?;
    unknown(scratch.mongo.store(&held, studies.clone(), unread.clone()).await);
    fault.off().await?;
    scratch.mongo.store(&held, studies.clone(), unread.clone()).await?;
    assert_eq!(scratch.mongo.studies(search, file, 0, 10_000).await?, studies);
    assert_eq!(scratch.mongo.quarantined(search, file, 0, 10_000).await?, unread);
    scratch.end().await
}

/// The transactions of both writers conflict, and the rejected transaction starts again with the studies that are still
/// missing.
#[tokio::test]
async fn concurrent_copies_of_studies_both_succeed() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search, file) = (sample::partition(HOST), samples::file(HOST));
    let held = begin(&scratch, search, file).await?;
    let studies: Vec<_> = (1..=3_000).map(|record| samples::study(search, file, record)).collect();
    let copy = async || {
        for batch in studies.chunks(1_000) {
            scratch.mongo.store(&held, batch.to_vec(), vec![]).await?;
        }
        Ok::<_, messages::StoreError>(())
    };
    try_join3(copy(), copy(), copy()).await?;
    assert_eq!(scratch.mongo.studies(search, file, 0, 10_000).await?, studies);
    scratch.end().await
}

/// MongoDB rejects documents above 16 MiB, however often the write is repeated.
#[tokio::test]
async fn oversized_study_is_refused_permanently() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search, file) = (sample::partition(HOST), samples::file(HOST));
    let held = begin(&scratch, search, file).await?;
    let mut study = samples::study(search, file, 1);
    study.reference.r#abstract = Some("x".repeat(17 << 20));
    let error = scratch.mongo.store(&held, vec![study], vec![]).await.unwrap_err();
    assert!(!error.is_retryable(), "{}", error.chain());
    scratch.end().await
}

/// The test has more studies than one call handles, and one of them cannot be read.
#[tokio::test]
async fn studies_without_keys_are_found_after_migration() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search, file) = (sample::partition(HOST), samples::file(HOST));
    let held = begin(&scratch, search, file).await?;
    let studies: Vec<_> = (1..=1_001).map(|record| samples::study(search, file, record)).collect();
    scratch.mongo.store(&held, studies.clone(), vec![]).await?;
    scratch.mongo.finish(&samples::parsed(search, file, 0)).await?;
    let last = studies.last().unwrap();
    let keys = Fields::new(&last.reference).keys();
    let sharing = async || scratch.mongo.sharing(last.project_id, &keys, 2_000).await;
    let before = sharing().await?;
    assert!(before.iter().any(|found| found.at.record == last.record), "{before:?}");

    let stored = scratch.collection(collections::STUDY);
    stored.update_many(doc! {}, doc! { "$unset": { "Keys": 1 } }).await?;
    stored.update_one(doc! { "Record": 1_i64 }, doc! { "$set": { "Reference": Bson::Null } }).await?;
    assert_eq!(sharing().await?, []);
    assert_eq!(scratch.mongo.keyed(search, file, 1_000, 2).await?[0].keys, None);
    assert_eq!(scratch.mongo.make_missing_keys().await?, 1_001);
    assert_eq!(scratch.mongo.keyed(search, file, 1_000, 2).await?[0].keys.as_ref(), Some(&keys));
    assert_eq!(sharing().await?, before.into_iter().filter(|found| found.at.record > 1).collect::<Vec<_>>());
    assert_eq!(
        scratch.mongo.make_missing_keys().await?,
        0,
        "nothing is stored twice or retried indefinitely"
    );
    scratch.end().await
}
