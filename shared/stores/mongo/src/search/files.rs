//! Files that were read completely.

use async_trait::async_trait;
use futures::TryStreamExt;
use imports::{ParsedFile, SearchId};
use mongodb::ClientSession;
use mongodb::bson::{Document, doc};

use super::names::collections;
use super::names::file::{FILE, POSITION};
use super::names::study::SEARCH;
use super::parse_attempts;
use super::study_key::by_id;
use crate::Mongo;
use crate::error::CallError;
use crate::transaction::{Step, Work};
use crate::value::{Key, int, serde_field, to_bson};

const ID: &str = "_id";

/// Transaction that stores a completed file, unless it is stored already or was refused.
pub(crate) struct FinishTransaction<'a>(pub(crate) &'a ParsedFile);

#[async_trait]
impl Work for FinishTransaction<'_> {
    type Answer = ();

    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<()>, CallError> {
        let ParsedFile { search_id, file_id, position, .. } = *self.0;
        if parse_attempts::is_refused(mongo, client, search_id, file_id).await? {
            return Ok(Step::Abort(()));
        }
        let fields = doc! {
            SEARCH: search_id.key(),
            POSITION: int(position),
            FILE: to_bson(self.0)?,
        };
        mongo
            .collection(collections::FILE)
            .await?
            .update_one(by_id(search_id, file_id), doc! { "$setOnInsert": fields })
            .upsert(true)
            .session(client)
            .await?;
        Ok(Step::Commit(()))
    }
}

pub(crate) async fn parsed(mongo: &Mongo, search: SearchId) -> Result<Vec<ParsedFile>, CallError> {
    let files = mongo.collection(collections::FILE).await?;
    let found = files.find(doc! { SEARCH: search.key() }).sort(doc! { POSITION: 1 }).await?;
    let decode = async |stored: Document| {
        serde_field(&stored, FILE)
            .map_err(|why| CallError::unreadable(collections::FILE, stored.get(ID), "a file", &why))
    };
    found.map_err(CallError::from).and_then(decode).try_collect().await
}
