//! A replica set of three servers whose primary is paused, replaced, and resumed.

use std::sync::Arc;

use futures::future::join_all;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, CollectionOptions, ReadConcern, WriteConcern};
use mongodb::{Client, Collection};
use servers::TestResult;
use servers::mongo::ReplicaSet;

use super::super::Environment;
use super::super::faults::{Worker, announce, check, have_ended, impatient, open, searches_to_import};

/// The number of times that the primary is replaced.
const DEPOSITIONS: usize = 4;
/// The number of searches that progress without the old primary.
const PROGRESSED: usize = 3;
/// The number of concurrent readers of the old primary when it resumes.
const READERS: usize = 8;

/// Returns the environment with visibility timeouts longer than the ten seconds that calls wait for a paused primary,
/// as in production. Otherwise a message would be redelivered while an attempt hangs, and every delivery doubles its
/// retry delay.
fn outwaiting(environment: &Environment) -> Environment {
    impatient(environment).but("SEARCH_IMPORT_VISIBILITY_SECONDS", "30")
}

/// A paused primary does not know its successor. After it resumes, it still serves majority reads without the
/// successor's writes, until it learns of the successor, which the test delays until some reads were served. The
/// pending writes of the deposed primary are rolled back. One worker here sees only the old primary, as in a network
/// partition. Another worker follows the current primary.
#[tokio::test(flavor = "multi_thread")]
async fn deposed_primary_loses_and_repeats_nothing() -> TestResult {
    Environment::with(async |environment| {
        let set = ReplicaSet::start().await?;
        let environment = environment.but("MONGODB_URI", &set.uri());
        let program = outwaiting(&environment).program();
        let backend = open(&environment, 1).await?;
        let searches = announce(&backend, &environment, searches_to_import()).await?;
        let mut worker = Worker::start(&program, 1);
        let (mut stale, between) = (0, searches.len() / (DEPOSITIONS + 1));
        for round in 1..=DEPOSITIONS {
            let old = set.primary().await?;
            let confined = outwaiting(&environment).but("MONGODB_URI", &set.member(old).uri()).program();
            let _confined = Worker::start(&confined, 1);
            have_ended(&environment, round * between).await?;
            let marker = Arc::new(Marker::new(&set, old, round).await?);
            set.member(old).ignore_successors(true).await?;
            set.member(old).pause()?;
            set.new_primary(old).await?;
            // The calls of the other worker hang as well.
            worker = Worker::start(&program, 1);
            have_ended(&environment, round * between + PROGRESSED).await?;
            marker.change(&set).await?;
            let reads = tokio::spawn(async move { marker.stale_reads().await });
            set.member(old).resume()?;
            stale += reads.await?;
            set.member(old).ignore_successors(false).await?;
            set.is_secondary(old).await?;
        }
        have_ended(&environment, searches.len()).await?;
        println!("{DEPOSITIONS} primaries deposed; {stale} of their answers were stale");
        assert!(stale > 0, "no deposed primary answered from before its successor's writes");
        check(&backend, &environment, &searches, searches.len()).await?;
        worker.finish();
        Ok(())
    })
    .await
}

/// A document that is changed after the old primary was paused, so that reads of the old value are stale.
struct Marker {
    old: Collection<Document>,
    round: i32,
}

impl Marker {
    async fn new(set: &ReplicaSet, old: usize, round: usize) -> Result<Self, mongodb::error::Error> {
        // The connection must not time out while the server is paused.
        let uri = format!("{}&connectTimeoutMS=60000", set.member(old).uri());
        let marker = Self { old: collection(&uri).await?, round: round as i32 };
        marker.old.insert_one(doc! { "_id": marker.round, "changed": false }).await?;
        // From now on, each reader has a connection.
        marker.stale_reads().await;
        Ok(marker)
    }

    async fn change(&self, set: &ReplicaSet) -> Result<(), mongodb::error::Error> {
        let change = doc! { "$set": { "changed": true } };
        collection(&set.uri()).await?.update_one(doc! { "_id": self.round }, change).await.map(|_| ())
    }

    /// Returns how many of several concurrent reads are stale. A server that has learned of its successor may reject
    /// them.
    async fn stale_reads(&self) -> usize {
        let reads = (0..READERS).map(|_| self.old.find_one(doc! { "_id": self.round, "changed": false }));
        join_all(reads.map(IntoFuture::into_future))
            .await
            .iter()
            .filter(|read| matches!(read, Ok(Some(_))))
            .count()
    }
}

/// Returns the marker's collection, with majority reads and writes as in the adapter.
async fn collection(uri: &str) -> Result<Collection<Document>, mongodb::error::Error> {
    let options = CollectionOptions::builder()
        .read_concern(ReadConcern::majority())
        .write_concern(WriteConcern::builder().w(Acknowledgment::Majority).build())
        .build();
    Ok(Client::with_uri_str(uri).await?.database("test_marker").collection_with_options("marker", options))
}
