//! Index of the words of studies.

use async_trait::async_trait;
use futures::TryStreamExt;
use imports::words::{BucketRange, UnindexedFile, WordBucket, WordPart};
use imports::{FileId, FileRef, IndexWords, ParsedFile, SearchId};
use messages::StoreError;
use messages::store::chain;
use mongodb::ClientSession;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};

use super::names::collections;
use super::names::file::{FILE, WORDS};
use super::names::study;
use super::names::word::{BUCKET, LAST};
use super::study_key::{by_id, of_file};
use crate::Mongo;
use crate::error::CallError;
use crate::transaction::{self, Step, Work};
use crate::value::{Key, batch_size, count_field, int, serde_field};

const ID: &str = "_id";
const AFTER: &str = "After";
const BYTES: &str = "Bytes";

#[async_trait]
impl IndexWords for Mongo {
    async fn unindexed(
        &self,
        after: Option<FileRef>,
        limit: usize,
    ) -> Result<Vec<UnindexedFile>, StoreError> {
        self.call("finding files whose words are not indexed".to_owned(), unindexed(self, after, limit)).await
    }

    async fn store_words(&self, search: SearchId, file: FileId, part: WordPart) -> Result<bool, StoreError> {
        let doing = format!("storing words of file {file} of search {search}");
        self.call(doing, transaction::run(self, &PartTransaction { file: FileRef::new(search, file), part }))
            .await
    }
}

async fn unindexed(
    mongo: &Mongo,
    after: Option<FileRef>,
    limit: usize,
) -> Result<Vec<UnindexedFile>, CallError> {
    let files = mongo.collection(collections::FILE).await?;
    let read = |stored: &Document| -> Result<UnindexedFile, String> {
        let ParsedFile { search_id, file_id, .. } = serde_field(stored, FILE)?;
        let after = if stored.contains_key(WORDS) { count_field(stored, WORDS)? } else { 0 };
        Ok(UnindexedFile { search_id, file_id, after })
    };
    let mut after = after.and_then(|FileRef { search_id, file_id }| by_id(search_id, file_id).remove(ID));
    loop {
        let mut which = doc! { "$or": [{ WORDS: Bson::Null }, { WORDS: { "$lt": i64::MAX } }] };
        if let Some(after) = after {
            which.extend(doc! { ID: { "$gt": after } });
        }
        let found = files.find(which).sort(doc! { ID: 1 }).limit(int(limit)).batch_size(batch_size(limit));
        let found: Vec<Document> = found.await?.try_collect().await?;
        let mut unindexed = Vec::with_capacity(found.len());
        for stored in &found {
            match read(stored) {
                Ok(file) => unindexed.push(file),
                // The words of other files can be indexed.
                Err(why) => {
                    let damaged = CallError::unreadable(collections::FILE, stored.get(ID), "a file", &why);
                    let error = chain(&damaged);
                    tracing::error!(error, "a file is not indexed, because its document is damaged");
                }
            }
        }
        if !unindexed.is_empty() || found.len() < limit {
            return Ok(unindexed);
        }
        after = found.last().and_then(|stored| stored.get(ID).cloned());
    }
}

/// Transaction that stores a part if the file is listed and the part follows the last stored one. It changes the file's
/// document, so it conflicts with the removal of the file.
struct PartTransaction {
    file: FileRef,
    part: WordPart,
}

#[async_trait]
impl Work for PartTransaction {
    /// `true` if the part was stored.
    type Answer = bool;

    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<bool>, CallError> {
        let FileRef { search_id, file_id } = self.file;
        let WordPart { after, last, buckets } = &self.part;
        let mut which = by_id(search_id, file_id);
        let before = Bson::from(int(*after));
        let before = if *after == 0 { vec![before, Bson::Null] } else { vec![before] };
        which.insert(WORDS, doc! { "$in": before });
        let files = mongo.collection(collections::FILE).await?;
        let update = doc! { "$set": { WORDS: int(*last) } };
        if files.update_one(which, update).session(&mut *client).await?.matched_count == 0 {
            return Ok(Step::Abort(false));
        }
        let document = |WordBucket { key, words }: &WordBucket| {
            let words = Binary { subtype: BinarySubtype::Generic, bytes: words.clone() };
            doc! {
                study::SEARCH: search_id.key(), study::FILE: file_id.key(), LAST: int(*last), BUCKET: key,
                AFTER: int(*after), BYTES: words,
            }
        };
        let documents: Vec<Document> = buckets.iter().map(document).collect();
        mongo.collection(collections::WORD).await?.insert_many(documents).session(client).await?;
        Ok(Step::Commit(true))
    }
}

/// Reads some buckets of the part that has the records after `after`.
pub(crate) async fn words(
    mongo: &Mongo,
    file: FileRef,
    after: u64,
    ranges: &[BucketRange],
) -> Result<Option<WordPart>, CallError> {
    let collection = mongo.collection(collections::WORD).await?;
    let mut which = of_file(file.search_id, file.file_id);
    which.insert(LAST, doc! { "$gt": int(after) });
    let first = collection.find_one(which).sort(doc! { LAST: 1, BUCKET: 1 });
    let Some(first) = first.projection(doc! { LAST: 1, AFTER: 1 }).await? else { return Ok(None) };
    let unreadable = |stored: &Document, why: String| {
        CallError::unreadable(collections::WORD, stored.get(ID), "words", &why)
    };
    let limits = || Ok::<_, String>((count_field(&first, AFTER)?, count_field(&first, LAST)?));
    let (before, last) = limits().map_err(|why| unreadable(&first, why))?;
    let range = |BucketRange { key, is_open }: &BucketRange| {
        if *is_open {
            doc! { BUCKET: { "$gte": key, "$lt": format!("{key}{}", char::MAX) } }
        } else {
            doc! { BUCKET: key }
        }
    };
    let mut which = of_file(file.search_id, file.file_id);
    which.insert(LAST, int(last));
    which.insert("$or", ranges.iter().map(range).collect::<Vec<_>>());
    let found = collection.find(which).await?;
    let decode = async |stored: Document| match (stored.get_str(BUCKET), stored.get_binary_generic(BYTES)) {
        (Ok(key), Ok(words)) => Ok(WordBucket { key: key.to_owned(), words: words.clone() }),
        _ => Err(unreadable(&stored, "its bucket or its bytes are missing".to_owned())),
    };
    let buckets = found.map_err(CallError::from).and_then(decode).try_collect().await?;
    Ok(Some(WordPart { after: before, last, buckets }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_do_not_change() {
        assert_eq!([WORDS, LAST, BUCKET, AFTER, BYTES].join(" "), "Words Last Bucket After Bytes");
    }
}
