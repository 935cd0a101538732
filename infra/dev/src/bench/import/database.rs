//! The same studies on MongoDB, as the parser stores them, beside a bare insert of the very same documents.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::Context;
use backend::{Config, SystemHost};
use futures::TryStreamExt;
use imports::{FileFence, FileId, ParseAttempts, ProjectId, SearchId, Study, WriteStudies};
use messages::Host;
use mongo::connect::client_options;
use mongo::{Mongo, OnDifference, Settings, Uri, collections};
use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::{Client, Collection, IndexModel};
use references::{Limits, Outcome, READER_VERSION, Reader};
use serde::Serialize;

use super::records;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Database {
    /// How many studies there were.
    pub studies: u64,
    /// The time that reading their file and storing them took, one after the other.
    pub stored_s: f64,
    /// The part of it in which they were read.
    pub read_s: f64,
    /// The time that the server took to insert the same documents, with the same indexes and as safely.
    pub bare_s: f64,
}

impl Database {
    /// How many studies a second were read and stored.
    pub fn studies_per_second(&self) -> f64 {
        self.studies as f64 / self.stored_s
    }

    /// How many documents a second the server inserted.
    pub fn bare_per_second(&self) -> f64 {
        self.studies as f64 / self.bare_s
    }
}

/// Stores so many studies in a database of its own beside the one that is configured; it is removed at the end.
///
/// # Errors
/// When the server does not answer, or the file is not read as it was made.
pub async fn in_database(mut config: Config, studies: u64) -> anyhow::Result<Database> {
    let own = format!("_import_{}", SystemHost.fresh_id().simple());
    config.services.mongodb_database.push_str(&own);
    let mongo = backend::services::database(&config, &aws::config().await).await?;
    mongo.ensure_indexes(OnDifference::Report).await?;
    let measured = measure(&config, &mongo, studies).await;
    mongo.drop_database().await?;
    measured
}

async fn measure(config: &Config, mongo: &Mongo, studies: u64) -> anyhow::Result<Database> {
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
        // In turns, so that what disturbs one of them disturbs the other too.
        inserting += bare.insert(stored, count).await?;
        stored += count as u64;
    }
    anyhow::ensure!(stored == studies, "{stored} of {studies} studies were stored");
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(Database {
        studies,
        stored_s: seconds(reading + storing),
        read_s: seconds(reading),
        bare_s: seconds(inserting),
    })
}

/// Inserts what was stored into a collection beside it, with the same indexes.
struct Bare {
    from: Collection<RawDocumentBuf>,
    to: Collection<RawDocumentBuf>,
}

impl Bare {
    async fn beside(config: &Config) -> anyhow::Result<Self> {
        let uri = config.services.mongodb_uri.as_ref().context("MONGODB_URI is not set")?;
        let settings = Settings::new(Uri::new(uri.expose()), &config.services.mongodb_database);
        let database = Client::with_options(client_options(&settings).await?)?.database(&settings.database);
        let (from, to) = (database.collection(collections::STUDY), database.collection("bare"));
        let indexes: Vec<IndexModel> = from.list_indexes().await?.try_collect().await?;
        let is_own = |index: &IndexModel| index.keys != doc! { "_id": 1 };
        to.create_indexes(indexes.into_iter().filter(is_own)).await?;
        Ok(Self { from, to })
    }

    /// The time that it took to insert the studies after some others.
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
