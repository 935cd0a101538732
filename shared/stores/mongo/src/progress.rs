//! How far files are: one document a search, with a field for each file.

use std::collections::BTreeMap;

use async_trait::async_trait;
use imports::{FileId, Progress, ReadProgress, ReportProgress, SearchId};
use messages::StoreError;
use mongodb::bson::doc;

use crate::Mongo;
use crate::fault::Fault;
use crate::names::collections;
use crate::value::{Key, serde_field, to_bson};

const ID: &str = "_id";
const FILES: &str = "Files";
/// A date by the server's clock, for the TTL index: the port passes no time.
pub(crate) const REPORTED_AT: &str = "ReportedAt";

#[async_trait]
impl ReportProgress for Mongo {
    async fn report(&self, search: SearchId, file: FileId, progress: Progress) -> Result<(), StoreError> {
        let work = async {
            let update = doc! {
                "$set": { format!("{FILES}.{file}"): to_bson(&progress)? },
                "$currentDate": { REPORTED_AT: true },
            };
            let reports = self.collection(collections::PROGRESS).await?;
            reports.update_one(doc! { ID: search.key() }, update).upsert(true).await?;
            Ok(())
        };
        self.call(format!("reporting the progress of file {file} of search {search}"), work).await
    }
}

#[async_trait]
impl ReadProgress for Mongo {
    async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        self.call(format!("reading the progress of search {search}"), read(self, search)).await
    }
}

/// In the order of the files.
async fn read(mongo: &Mongo, search: SearchId) -> Result<Vec<(FileId, Progress)>, Fault> {
    let reports = mongo.collection(collections::PROGRESS).await?;
    let Some(stored) = reports.find_one(doc! { ID: search.key() }).await? else { return Ok(Vec::new()) };
    let files: BTreeMap<FileId, Progress> = serde_field(&stored, FILES)
        .map_err(|why| Fault::foreign(collections::PROGRESS, stored.get(ID), "a search's progress", &why))?;
    Ok(files.into_iter().collect())
}
