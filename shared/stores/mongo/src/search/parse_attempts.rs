//! Attempts to read files, and the fences that stop outdated attempts from writing: one document per file.

use async_trait::async_trait;
use futures::TryStreamExt;
use imports::parse_attempts::{AttemptState, FileFence, ParseAttempts, ReadingStatus};
use imports::{FileId, FileRef, SearchId};
use messages::StoreError;
use mongodb::ClientSession;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;

use super::names::attempts::TOUCHED_AT;
use super::names::collections;
use super::study_key::{by_id, of_file};
use crate::Mongo;
use crate::error::CallError;
use crate::transaction::{self, Step, Work};
use crate::value::{count_field, from_bson, int, to_bson};

const ID: &str = "_id";
const BEGUN: &str = "Begun";
const PLACE: &str = "Place";
/// The field is present in a status that is not final.
const WITHIN: &str = "Place.within";
/// The field is present in the status of a refused file.
const REFUSED: &str = "Place.refused";
/// The field is absent in documents of versions without fences, which counts as fence 0.
const FENCE: &str = "Fence";
/// Version of the reader of the latest attempt.
const READER: &str = "Reader";
/// Present while records from before the latest increment of the fence are stored.
const CLEARING: &str = "Clearing";
/// Incremented by each transaction, because a write without a change would not conflict with the increment of the
/// fence.
const WRITES: &str = "Writes";
/// Number of records that one transaction deletes.
const DELETE_BATCH: i64 = 1_000;

#[async_trait]
impl ParseAttempts for Mongo {
    async fn start(&self, search: SearchId, file: FileId, reader: u32) -> Result<AttemptState, StoreError> {
        let doing = format!("starting an attempt to read file {file} of search {search}");
        let work = async {
            let attempts = self.collection(collections::READING).await?;
            let after = attempts
                .find_one_and_update(by_id(search, file), start_update(reader))
                .upsert(true)
                .return_document(ReturnDocument::After)
                .await?;
            let stored = after.ok_or_else(|| CallError::InvalidReply("it has no document".to_owned()))?;
            Ok((decode(&stored)?, stored.contains_key(CLEARING)))
        };
        let (reading, is_clearing) = self.call(doing.clone(), work).await?;
        if is_clearing {
            clear(self, &FileFence { search_id: search, file_id: file, fence: reading.fence }, &doing)
                .await?;
        }
        Ok(reading)
    }

    async fn save(&self, file: &FileFence, place: &ReadingStatus) -> Result<(), StoreError> {
        let doing =
            format!("saving the reading status of file {} of search {}", file.file_id, file.search_id);
        let work = async {
            let mut which = with_fence(file);
            if !place.is_final() {
                which.insert("$or", not_final());
            }
            let attempts = self.collection(collections::READING).await?;
            let is_set = attempts.update_one(which, reach(to_bson(place)?)).await?.matched_count > 0;
            // Another attempt may have completed the file, which is not an error of this one.
            Ok(is_set || attempts.find_one(with_fence(file)).await?.is_some())
        };
        let is_held = self.call(doing.clone(), work).await?;
        if is_held { Ok(()) } else { Err(FileFence::overtaken(doing)) }
    }

    async fn place(&self, search: SearchId, file: FileId) -> Result<Option<ReadingStatus>, StoreError> {
        let look = async {
            let attempts = self.collection(collections::READING).await?;
            let Some(stored) = attempts.find_one(by_id(search, file)).await? else { return Ok(None) };
            Ok(decode(&stored)?.place)
        };
        self.call(format!("reading the status of file {file} of search {search}"), look).await
    }

    async fn end(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let work = async {
            let update = doc! { "$set": { BEGUN: int(0_u32) }, "$currentDate": { TOUCHED_AT: true } };
            let attempts = self.collection(collections::READING).await?;
            attempts.update_one(by_id(search, file), update).await?;
            Ok(())
        };
        self.call(format!("ending an attempt to read file {file} of search {search}"), work).await
    }
}

/// Returns the update that counts an attempt. If a reader of another version has not completed the file, it also
/// increments the fence.
fn start_update(reader: u32) -> Vec<Document> {
    const STALE: &str = "Stale";
    let missing = |field: &str| doc! { "$eq": [{ "$type": format!("${field}") }, "missing"] };
    let if_stale = |then: Bson, otherwise: Bson| doc! { "$cond": [format!("${STALE}"), then, otherwise] };
    let or_none = |field: &str| doc! { "$ifNull": [format!("${field}"), int(0_u32)] };
    let more = |field: &str| Bson::Document(doc! { "$add": [or_none(field), int(1_u32)] });
    let stale = doc! { "$and": [
        { "$not": [missing(READER)] },
        { "$ne": [format!("${READER}"), int(reader)] },
        { "$or": [missing(PLACE), { "$not": [missing(WITHIN)] }] },
    ] };
    vec![
        doc! { "$set": { STALE: stale } },
        doc! { "$set": {
            BEGUN: if_stale(int(1_u32).into(), more(BEGUN)),
            FENCE: if_stale(more(FENCE), or_none(FENCE).into()),
            PLACE: if_stale("$$REMOVE".into(), format!("${PLACE}").into()),
            CLEARING: if_stale(true.into(), format!("${CLEARING}").into()),
            READER: int(reader),
            TOUCHED_AT: "$$NOW",
        } },
        doc! { "$unset": STALE },
    ]
}

/// Returns the update that replaces the status. Another status than the last one is progress.
fn reach(place: Bson) -> Vec<Document> {
    let (begun, place) = (format!("${BEGUN}"), doc! { "$literal": place });
    let is_same = doc! { "$eq": [format!("${PLACE}"), &place] };
    vec![doc! { "$set": {
        BEGUN: { "$cond": [is_same, &begun, { "$min": [&begun, int(1_u32)] }] },
        PLACE: place,
        TOUCHED_AT: "$$NOW",
    } }]
}

/// Returns the alternative conditions of a status that is not final.
fn not_final() -> Vec<Document> {
    vec![doc! { PLACE: { "$exists": false } }, doc! { WITHIN: { "$exists": true } }]
}

/// Returns the filter of the file's document with this fence.
fn with_fence(file: &FileFence) -> Document {
    let mut which = by_id(file.search_id, file.file_id);
    let fence = Bson::from(int(file.fence));
    let fences = if file.fence == 0 { vec![fence, Bson::Null] } else { vec![fence] };
    which.insert(FENCE, doc! { "$in": fences });
    which
}

/// Returns within a transaction whether the file has this fence, and prevents a change of the fence until the
/// transaction ends.
pub(crate) async fn lock_fence(
    mongo: &Mongo,
    client: &mut ClientSession,
    file: &FileFence,
) -> Result<bool, CallError> {
    let mut which = with_fence(file);
    which.insert(CLEARING, doc! { "$exists": false });
    touch(mongo, client, which).await
}

async fn touch(mongo: &Mongo, client: &mut ClientSession, which: Document) -> Result<bool, CallError> {
    let update = doc! { "$inc": { WRITES: 1_i64 }, "$currentDate": { TOUCHED_AT: true } };
    let attempts = mongo.collection(collections::READING).await?;
    Ok(attempts.update_one(which, update).session(client).await?.matched_count > 0)
}

/// Increments the fence of a file whose status is not final, and deletes its stored records.
pub(crate) async fn discard(
    mongo: &Mongo,
    file: &FileFence,
    then: Option<&ReadingStatus>,
    doing: &str,
) -> Result<FileFence, StoreError> {
    let raise = async {
        let mut which = with_fence(file);
        which.insert("$or", not_final());
        let mut update = doc! {
            "$inc": { FENCE: 1_i64 },
            "$set": { CLEARING: true },
            "$currentDate": { TOUCHED_AT: true },
        };
        match then {
            Some(place) => update.insert("$set", doc! { CLEARING: true, PLACE: to_bson(place)? }),
            None => update.insert("$unset", doc! { PLACE: "" }),
        };
        Ok(mongo.collection(collections::READING).await?.update_one(which, update).await?.matched_count > 0)
    };
    if !mongo.call(doing.to_owned(), raise).await? {
        return Err(FileFence::overtaken(doing));
    }
    let raised = FileFence { fence: file.fence + 1, ..*file };
    clear(mongo, &raised, doing).await?;
    Ok(raised)
}

/// Refuses a file in the same way as [`withdraw`], and deletes its stored records.
pub(crate) async fn remove(
    mongo: &Mongo,
    search: SearchId,
    file: FileId,
    refused: &ReadingStatus,
    doing: &str,
) -> Result<(), StoreError> {
    let held = refuse(mongo, FileRef::new(search, file), refused, doc! { CLEARING: true }, doing).await?;
    clear(mongo, &held, doing).await
}

/// Refuses a file in any status, increments its fence unless it was refused before, and deletes its record of
/// completion. Its studies remain, because other studies may refer to them.
pub(crate) async fn withdraw(
    mongo: &Mongo,
    search: SearchId,
    file: FileId,
    refused: &ReadingStatus,
    doing: &str,
) -> Result<(), StoreError> {
    refuse(mongo, FileRef::new(search, file), refused, doc! {}, doing).await.map(|_| ())
}

/// Refuses a file and returns its fence. Deleting a file that was refused before continues with the same fence.
async fn refuse(
    mongo: &Mongo,
    FileRef { search_id, file_id }: FileRef,
    refused: &ReadingStatus,
    mut fields: Document,
    doing: &str,
) -> Result<FileFence, StoreError> {
    let work = async {
        let is_first = doc! { "$eq": [{ "$type": format!("${REFUSED}") }, "missing"] };
        let fence = doc! { "$ifNull": [format!("${FENCE}"), int(0_u32)] };
        let more = doc! { "$cond": [is_first, int(1_u32), int(0_u32)] };
        fields.extend(doc! {
            FENCE: { "$add": [fence, more] },
            // A literal, because its text could be an expression.
            PLACE: { "$literal": to_bson(refused)? },
            BEGUN: { "$ifNull": [format!("${BEGUN}"), int(0_u32)] },
            TOUCHED_AT: "$$NOW",
        });
        let attempts = mongo.collection(collections::READING).await?;
        let update = vec![doc! { "$set": fields }];
        let after = attempts.find_one_and_update(by_id(search_id, file_id), update).upsert(true);
        let after = after.return_document(ReturnDocument::After).await?;
        let stored = after.ok_or_else(|| CallError::InvalidReply("it has no document".to_owned()))?;
        // This statement comes last: any later attempt to complete the file finds the file refused.
        mongo.collection(collections::FILE).await?.delete_one(by_id(search_id, file_id)).await?;
        count_field(&stored, FENCE).map_err(CallError::InvalidReply)
    };
    let fence = mongo.call(doing.to_owned(), work).await?;
    Ok(FileFence { search_id, file_id, fence })
}

/// Returns within a transaction whether a file was refused or deleted, and prevents a change until the transaction
/// ends.
pub(crate) async fn is_refused(
    mongo: &Mongo,
    client: &mut ClientSession,
    search: SearchId,
    file: FileId,
) -> Result<bool, CallError> {
    let mut which = by_id(search, file);
    which.insert(REFUSED, doc! { "$exists": false });
    if touch(mongo, client, which.clone()).await? {
        return Ok(false);
    }
    which.insert(REFUSED, doc! { "$exists": true });
    Ok(mongo.collection(collections::READING).await?.find_one(which).session(client).await?.is_some())
}

/// Deletes the records from before the latest increment of the fence, in batches.
async fn clear(mongo: &Mongo, file: &FileFence, doing: &str) -> Result<(), StoreError> {
    while !mongo.call(doing.to_owned(), transaction::run(mongo, &ClearTransaction(file))).await? {}
    Ok(())
}

struct ClearTransaction<'a>(&'a FileFence);

#[async_trait]
impl Work for ClearTransaction<'_> {
    /// `true` if all records are deleted.
    type Answer = bool;

    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<bool>, CallError> {
        let mut which = with_fence(self.0);
        which.insert(CLEARING, true);
        if !touch(mongo, client, which.clone()).await? {
            // Another worker has completed the file.
            return Ok(Step::Abort(true));
        }
        let mut is_clear = true;
        for collection in [collections::STUDY, collections::QUARANTINE, collections::WORD] {
            is_clear &= remove_batch(mongo, client, collection, self.0).await? == 0;
        }
        if is_clear {
            let update = doc! { "$unset": { CLEARING: "" } };
            mongo.collection(collections::READING).await?.update_one(which, update).session(client).await?;
        }
        Ok(Step::Commit(is_clear))
    }
}

async fn remove_batch(
    mongo: &Mongo,
    client: &mut ClientSession,
    collection: &'static str,
    file: &FileFence,
) -> Result<usize, CallError> {
    let collection = mongo.collection(collection).await?;
    let found = collection.find(of_file(file.search_id, file.file_id)).projection(doc! { ID: 1 });
    let mut found = found.limit(DELETE_BATCH).session(&mut *client).await?;
    let found: Vec<Document> = found.stream(client).try_collect().await?;
    let ids: Vec<&Bson> = found.iter().filter_map(|stored| stored.get(ID)).collect();
    if !ids.is_empty() {
        collection.delete_many(doc! { ID: { "$in": &ids } }).session(client).await?;
    }
    Ok(ids.len())
}

fn decode(stored: &Document) -> Result<AttemptState, CallError> {
    let read = || {
        // The count includes the current attempt.
        let begun = count_field::<u32>(stored, BEGUN)?.saturating_sub(1);
        let place = stored.get(PLACE).cloned().map(from_bson::<ReadingStatus>).transpose()?;
        Ok(AttemptState { begun, place, fence: count_field(stored, FENCE)? })
    };
    read().map_err(|why: String| {
        CallError::unreadable(collections::READING, stored.get(ID), "the attempts at a file", &why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_earlier_versions_is_readable() {
        let refused = doc! { "refused": { "reason": "empty", "reply": 1_i64 } };
        let stored = doc! { "Begun": 2_i64, "Place": refused, "Fence": 3_i64 };
        let place = Some(ReadingStatus::refused("empty", 1));
        assert_eq!(decode(&stored).unwrap(), AttemptState { begun: 1, place, fence: 3 });
    }

    #[test]
    fn stored_names_do_not_change() {
        let fields = [BEGUN, PLACE, WITHIN, REFUSED, FENCE, READER, CLEARING, WRITES, TOUCHED_AT];
        let stored = "Begun Place Place.within Place.refused Fence Reader Clearing Writes TouchedAt";
        assert_eq!(fields.join(" "), stored);
    }
}
