//! Progress of reading files: one document per search, with a field for each file.

use std::collections::BTreeMap;

use async_trait::async_trait;
use imports::{FileId, Progress, ReadProgress, ReportProgress, SearchId};
use messages::StoreError;
use mongodb::bson::doc;

use super::names::collections;
use super::names::progress::REPORTED_AT;
use crate::Mongo;
use crate::error::CallError;
use crate::value::{Key, serde_field, to_bson};

const ID: &str = "_id";
const FILES: &str = "Files";

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

/// Reads the progress of a search's files, in the order of their ids.
async fn read(mongo: &Mongo, search: SearchId) -> Result<Vec<(FileId, Progress)>, CallError> {
    let reports = mongo.collection(collections::PROGRESS).await?;
    let Some(stored) = reports.find_one(doc! { ID: search.key() }).await? else { return Ok(Vec::new()) };
    let files: BTreeMap<FileId, Progress> = serde_field(&stored, FILES).map_err(|why| {
        CallError::unreadable(collections::PROGRESS, stored.get(ID), "a search's progress", &why)
    })?;
    Ok(files.into_iter().collect())
}
