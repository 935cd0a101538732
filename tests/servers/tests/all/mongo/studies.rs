//! Studies beyond the contract suite: what is refused is not mistaken for what was there already.

use backend::SystemHost;
use futures::future::try_join3;
use imports::duplicates::Fields;
use imports::{CompareStudies, FileFence, FileId, ParseAttempts, ReadStudies, SearchId, WriteStudies};
use mongo::collections;
use mongodb::bson::{Bson, doc};
use testing::sample::{self, search as samples};

use super::faults::unknown;
use super::{Scratch, Tested};

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
async fn studies_that_no_majority_confirmed_are_no_success() -> Tested {
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
async fn a_store_that_was_cut_off_is_repeated_without_doubling_anything() -> Tested {
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

/// Their transactions meet; whichever is refused has to begin again, with what is missing then.
#[tokio::test]
async fn copies_that_store_the_same_studies_at_once_both_succeed() -> Tested {
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

/// MongoDB takes no document beyond 16 MiB, however often it is tried.
#[tokio::test]
async fn a_study_that_is_too_large_is_refused_for_good() -> Tested {
    let scratch = Scratch::new().await?;
    let (search, file) = (sample::partition(HOST), samples::file(HOST));
    let held = begin(&scratch, search, file).await?;
    let mut study = samples::study(search, file, 1);
    study.reference.r#abstract = Some("x".repeat(17 << 20));
    let error = scratch.mongo.store(&held, vec![study], vec![]).await.unwrap_err();
    assert!(!error.is_retryable(), "{}", error.chain());
    scratch.end().await
}

/// More than are done in one call, and one that cannot be read.
#[tokio::test]
async fn studies_of_a_release_without_keys_are_found_once_these_are_made() -> Tested {
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
    assert_eq!(scratch.mongo.make_missing_keys().await?, 0, "nothing is made twice, nor tried for ever");
    scratch.end().await
}
