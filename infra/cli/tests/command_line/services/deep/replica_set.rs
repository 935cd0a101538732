//! A database of three servers whose primary is stopped, deposed meanwhile, and continued.

use std::sync::Arc;

use futures::future::join_all;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, CollectionOptions, ReadConcern, WriteConcern};
use mongodb::{Client, Collection};
use servers::Tested;
use servers::mongo::ReplicaSet;

use super::super::Environment;
use super::super::faults::{Worker, announce, check, have_ended, impatient, open, searches_to_import};

/// The number of times that the primary is deposed.
const DEPOSITIONS: usize = 4;
/// How many searches go on without the old primary.
const MEANWHILE: usize = 3;
/// How many read from the old primary at the moment at which it is continued.
const READERS: usize = 8;

/// What calls wait for a stopped primary, ten seconds, is less than the time in which a message that was received comes again, as it
/// is in production. Otherwise a message is delivered over and over while one attempt hangs, and each delivery doubles what it waits
/// after the next failure.
fn outwaiting(environment: &Environment) -> Environment {
    impatient(environment).but("SEARCH_IMPORT_VISIBILITY_SECONDS", "30")
}

/// A stopped primary knows nothing of its successor. When it goes on it still answers majority reads, from before its
/// successor's writes, until it has learned of it, which is kept from it until some have read; and what it was asked to write is undone. One worker here sees
/// nothing but the primary, as behind a broken network; another one works with whichever server is primary.
#[tokio::test(flavor = "multi_thread")]
async fn of_what_a_deposed_primary_answers_nothing_is_lost_or_done_twice() -> Tested {
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
            set.primary_beside(old).await?;
            // The calls of the other worker hang, too.
            worker = Worker::start(&program, 1);
            have_ended(&environment, round * between + MEANWHILE).await?;
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

/// A document that is changed after the old primary was stopped: who reads it unchanged from there reads the past.
struct Marker {
    old: Collection<Document>,
    round: i32,
}

impl Marker {
    async fn new(set: &ReplicaSet, old: usize, round: usize) -> Result<Self, mongodb::error::Error> {
        // The connection is not to be given up while the server is stopped.
        let uri = format!("{}&connectTimeoutMS=60000", set.member(old).uri());
        let marker = Self { old: collection(&uri).await?, round: round as i32 };
        marker.old.insert_one(doc! { "_id": marker.round, "changed": false }).await?;
        // From now on there is a connection for each reader.
        marker.stale_reads().await;
        Ok(marker)
    }

    async fn change(&self, set: &ReplicaSet) -> Result<(), mongodb::error::Error> {
        let change = doc! { "$set": { "changed": true } };
        collection(&set.uri()).await?.update_one(doc! { "_id": self.round }, change).await.map(|_| ())
    }

    /// How many of several reads at the same time do not see the change. A server that has learned of its successor
    /// may refuse them.
    async fn stale_reads(&self) -> usize {
        let reads = (0..READERS).map(|_| self.old.find_one(doc! { "_id": self.round, "changed": false }));
        join_all(reads.map(IntoFuture::into_future))
            .await
            .iter()
            .filter(|read| matches!(read, Ok(Some(_))))
            .count()
    }
}

/// Where the marker is: read and written as the adapter does, by majority.
async fn collection(uri: &str) -> Result<Collection<Document>, mongodb::error::Error> {
    let options = CollectionOptions::builder()
        .read_concern(ReadConcern::majority())
        .write_concern(WriteConcern::builder().w(Acknowledgment::Majority).build())
        .build();
    Ok(Client::with_uri_str(uri).await?.database("test_marker").collection_with_options("marker", options))
}
