//! Files that were read to their end.

use async_trait::async_trait;
use futures::TryStreamExt;
use imports::{FileId, ParsedFile, SearchId, StudyId};
use mongodb::ClientSession;
use mongodb::bson::{Document, doc};

use crate::fault::Fault;
use crate::names::collections;
use crate::studies::SEARCH;
use crate::transaction::{Step, Work};
use crate::value::{Key, int, serde_field, to_bson};
use crate::{Mongo, reading};

const ID: &str = "_id";
/// The place among the files of the search.
pub(crate) const POSITION: &str = "Position";
const FILE: &str = "File";

/// Stores a file unless it is stored, or was removed.
pub(crate) struct Finishing<'a>(pub(crate) &'a ParsedFile);

#[async_trait]
impl Work for Finishing<'_> {
    type Answer = ();

    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<()>, Fault> {
        let ParsedFile { search_id, file_id, position, .. } = *self.0;
        if reading::is_refused(mongo, client, search_id, file_id).await? {
            return Ok(Step::Leave(()));
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

/// Records are numbered from 1, so that 0 stands for the file itself.
pub(crate) fn by_id(search: SearchId, file: FileId) -> Document {
    doc! { ID: StudyId::of(search, file, 0).key() }
}

pub(crate) async fn parsed(mongo: &Mongo, search: SearchId) -> Result<Vec<ParsedFile>, Fault> {
    let files = mongo.collection(collections::FILE).await?;
    let found = files.find(doc! { SEARCH: search.key() }).sort(doc! { POSITION: 1 }).await?;
    let decode = async |stored: Document| {
        serde_field(&stored, FILE)
            .map_err(|why| Fault::foreign(collections::FILE, stored.get(ID), "a file", &why))
    };
    found.map_err(Fault::from).and_then(decode).try_collect().await
}
