//! Storing and marking the same studies on MongoDB like the parser, compared with a plain insert of the same documents.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use backend::{Config, SystemHost};
use futures::TryStreamExt;
use imports::{
    FileFence, FileId, FileRef, ParseAttempts, ProjectId, ReadStudies, SearchId, Study, WriteStudies,
};
use messages::Host;
use mongo::connect::client_options;
use mongo::{Mongo, OnDifference, Settings, Uri, collections};
use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::{Client, Collection, IndexModel};
use references::{Limits, Outcome, READER_VERSION, Reader};
use serde::Serialize;
use service::marking::DuplicateMarking;
use testing::search;

use super::records;

/// The result of the measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Database {
    /// The number of studies.
    pub studies: u64,
    /// The total time for reading the file and then storing its studies.
    pub stored_s: f64,
    /// The part of this time for reading.
    pub read_s: f64,
    /// The time for marking the duplicates afterwards.
    pub marked_s: f64,
    /// The number of studies that are marked as duplicates.
    pub duplicates: u64,
    /// The time for inserting the same documents with the same indexes and write concern.
    pub bare_s: f64,
}

impl Database {
    /// Returns the number of studies read and stored per second.
    pub fn studies_per_second(&self) -> f64 {
        self.studies as f64 / self.stored_s
    }

    /// Returns the time for storing and marking, compared with the plain insert. Reading is not included.
    pub fn ratio(&self) -> f64 {
        (self.stored_s - self.read_s + self.marked_s) / self.bare_s
    }

    /// Returns the number of documents inserted per second.
    pub fn bare_per_second(&self) -> f64 {
        self.studies as f64 / self.bare_s
    }
}

/// Stores this many studies in a temporary database on the configured server.
///
/// # Errors
/// Returns an error if the server is unavailable, or if the read file differs from the generated one.
pub async fn in_database(mut config: Config, studies: u64) -> anyhow::Result<Database> {
    let own = format!("_import_{}", SystemHost.fresh_id().simple());
    config.services.mongodb_database.push_str(&own);
    let mongo = Arc::new(backend::services::database(&config, &aws::config().await).await?);
    mongo.ensure_indexes(OnDifference::Report).await?;
    let measured = measure(&config, &mongo, studies).await;
    mongo.drop_database().await?;
    measured
}

async fn measure(config: &Config, mongo: &Arc<Mongo>, studies: u64) -> anyhow::Result<Database> {
    let id = || SystemHost.fresh_id();
    let (project_id, search_id, file_id) =
        (ProjectId::from_uuid(id()), SearchId::from_uuid(id()), FileId::from_uuid(id()));
    let fence = mongo.start(search_id, file_id, READER_VERSION).await?.fence;
    let held = FileFence { search_id, file_id, fence };
    let bare = Bare::beside(config).await?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let mut reader = Reader::new(Limits::default()).with_threads(threads);
    let [mut reading, mut storing, mut inserting] = [Duration::ZERO; 3];
    let mut stored = 0;
    let each = mongo.batching().records;
    for first in (0..studies).step_by(each) {
        let behind = first + each as u64;
        let mut text = Vec::new();
        records::write(&mut text, first..studies.min(behind))?;
        let began = Instant::now();
        let mut outcomes = reader.push(&text)?;
        if behind >= studies {
            outcomes.extend(std::mem::replace(&mut reader, Reader::new(Limits::default())).finish()?.0);
        }
        reading += began.elapsed();
        let batch = outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Read(record) => Ok(Study::of(project_id, search_id, file_id, record)),
            Outcome::Quarantined(record) => anyhow::bail!("a record was not read: {}", record.reason),
        });
        let batch: Vec<Study> = batch.collect::<anyhow::Result<_>>()?;
        let (count, began) = (batch.len(), Instant::now());
        mongo.store(&held, batch, vec![]).await?;
        storing += began.elapsed();
        // Both measurements alternate, so that disturbances affect both of them.
        inserting += bare.insert(stored, count).await?;
        stored += count as u64;
    }
    anyhow::ensure!(stored == studies, "{stored} of {studies} studies were stored");
    let file = FileRef { search_id, file_id };
    mongo.finish(&search::parsed(search_id, file_id, 0)).await?;
    let (stored, compare, records) = (Arc::clone(mongo), Arc::clone(mongo), Arc::clone(mongo));
    let began = Instant::now();
    DuplicateMarking { stored, compare, records }.file_added(project_id, file, 0, || false).await?;
    let marking = began.elapsed();
    let duplicates = mongo.marked(search_id, file_id).await?.duplicates();
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(Database {
        studies,
        stored_s: seconds(reading + storing),
        read_s: seconds(reading),
        marked_s: seconds(marking),
        duplicates,
        bare_s: seconds(inserting),
    })
}

/// Inserts the stored documents into another collection with the same indexes.
struct Bare {
    from: Collection<RawDocumentBuf>,
    to: Collection<RawDocumentBuf>,
}

impl Bare {
    async fn beside(config: &Config) -> anyhow::Result<Self> {
        let uri = config.services.mongodb_uri.as_ref().context("MONGODB_URI is not set")?;
        let settings = Settings {
            database: config.services.mongodb_database.clone(),
            ..Settings::new(imports::SYSTEM, Uri::new(uri.expose()))
        };
        let database = Client::with_options(client_options(&settings).await?)?.database(&settings.database);
        let (from, to) = (database.collection(collections::STUDY), database.collection("bare"));
        let indexes: Vec<IndexModel> = from.list_indexes().await?.try_collect().await?;
        let is_own = |index: &IndexModel| index.keys != doc! { "_id": 1 };
        to.create_indexes(indexes.into_iter().filter(is_own)).await?;
        Ok(Self { from, to })
    }

    /// Inserts the next studies. Returns the duration.
    async fn insert(&self, after: u64, studies: usize) -> anyhow::Result<Duration> {
        let found = self.from.find(doc! {}).sort(doc! { "SearchId": 1, "FileId": 1, "Record": 1 });
        let found = found.skip(after).limit(i64::try_from(studies)?);
        let documents: Vec<_> = found.await?.try_collect().await?;
        anyhow::ensure!(documents.len() == studies, "{} of {studies} documents were found", documents.len());
        let began = Instant::now();
        self.to.insert_many(&documents).await?;
        Ok(began.elapsed())
    }
}
