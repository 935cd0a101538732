//! Pages over the files of a search, in the order of files and records, with limits on the work for one page.

use async_trait::async_trait;
use imports::{ParsedFile, Readable, readable};
use messages::StoreError;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use service::study_view::RecordPlace;

/// The number of bytes that one read of the store returns, plus up to one record.
pub(super) const READ_BYTES: usize = 1 << 20;
/// The maximum number of records that one read of the store returns.
pub(super) const READ_RECORDS: usize = 500;
/// The cost of a read that finds records. One that finds none costs 1.
const FULL_READ: usize = 5;
/// The maximum cost of all reads for one page. It bounds how many records a filter examines, and how many files without
/// any are read.
pub(super) const MAX_COST: usize = 20 * FULL_READ;

/// The maximum size of a page's JSON, in bytes; a Lambda response is limited to 6 MB.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// The page that a client requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRequest<'a> {
    /// The maximum number of items.
    pub(super) limit: usize,
    /// The cursor of the previous page.
    pub(super) after: Option<&'a str>,
}

/// A listing of a file's items.
#[async_trait]
pub(super) trait Listing: Send + Sync {
    type Item: Send;

    /// Returns the number of items to read at a time if `wanted` are needed.
    fn batch(&self, wanted: usize) -> usize {
        wanted
    }

    /// Returns up to `limit` items after a record, and about [`READ_BYTES`]; an empty list if there are no more.
    async fn read(&self, file: &ParsedFile, after: u64, limit: usize) -> Result<Vec<Self::Item>, StoreError>;

    /// Returns the record number of an item.
    fn record(item: &Self::Item) -> u64;

    /// Returns the JSON of an item, or `None` if it is filtered out.
    async fn show(&self, file: &ParsedFile, item: Self::Item) -> Result<Option<Box<RawValue>>, StoreError>;
}

/// The limits of a page, or of the rest of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageLimit {
    pub(super) items: usize,
    /// The maximum size of the JSON; a larger item forms a separate page.
    pub(super) bytes: usize,
    /// `true` if the page has items already, so that no larger item fits.
    pub(super) is_begun: bool,
}

/// A page of a listing.
#[derive(Default)]
pub(super) struct Page {
    pub(super) items: Vec<Box<RawValue>>,
    /// The records that are not among the items, because they are damaged.
    pub(super) damaged: Vec<DamagedView>,
    /// The cursor of its end, if more may follow.
    pub(super) next: Option<RecordPlace>,
    /// The cost of the reads of the store.
    pub(super) cost: usize,
}

/// A stored record that cannot be read any more, and that a list therefore omits.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct DamagedView {
    /// The name of its file.
    file: String,
    /// Its number in the file, from 1.
    record: u64,
}

/// Returns the next page of a listing after the cursor. It may be short, or empty, even if more items follow.
pub(super) async fn page<S: Listing>(
    listing: &S,
    files: &[ParsedFile],
    after: Option<RecordPlace>,
    limit: PageLimit,
) -> Result<Page, StoreError> {
    let mut place = after.unwrap_or_default();
    let (mut page, mut bytes) = (Page::default(), 0_usize);
    let begin = place.position;
    for file in files.iter().filter(|file| file.position >= begin) {
        if file.position > place.position {
            place = RecordPlace { position: file.position, record: 0 };
        }
        loop {
            let batch = listing.batch(limit.items.saturating_add(1)).min(READ_RECORDS);
            let read = |after, limit| listing.read(file, after, limit);
            if page.cost >= MAX_COST {
                return Ok(Page { next: Some(place), ..page });
            }
            let Readable { items: read, damaged, last } =
                readable(place.record, batch, S::record, read).await?;
            page.cost += if last.is_some() { FULL_READ } else { 1 };
            let Some(last) = last else { break };
            for item in read {
                let record = S::record(&item);
                if let Some(shown) = listing.show(file, item).await? {
                    let more = shown.get().len();
                    let is_begun = limit.is_begun || !page.items.is_empty();
                    let is_full = is_begun && bytes.saturating_add(more) > limit.bytes;
                    if is_full || page.items.len() == limit.items {
                        return Ok(Page { next: Some(place), ..page });
                    }
                    bytes = bytes.saturating_add(more);
                    page.items.push(shown);
                }
                place.record = record;
            }
            if let Some((record, why)) = damaged {
                tracing::error!(file = %file.file_id, record, why, "a stored record is damaged and not listed");
                page.damaged.push(DamagedView { file: file.name.clone(), record });
            }
            place.record = last;
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use imports::messages::ObjectRef;
    use imports::{FileId, SearchId};
    use uuid::Uuid;

    use super::*;

    /// Files without any item.
    #[derive(Default)]
    struct Nothing(AtomicUsize);

    #[async_trait]
    impl Listing for Nothing {
        type Item = u64;

        async fn read(&self, _: &ParsedFile, _: u64, _: usize) -> Result<Vec<u64>, StoreError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }

        fn record(item: &u64) -> u64 {
            *item
        }

        async fn show(&self, _: &ParsedFile, _: u64) -> Result<Option<Box<RawValue>>, StoreError> {
            Ok(None)
        }
    }

    #[tokio::test]
    async fn reads_without_items_are_bounded() {
        let search = SearchId::from_uuid(Uuid::nil());
        let object = ObjectRef { bucket: String::new(), key: String::new(), version: None, size_bytes: 0 };
        let file = |position| ParsedFile {
            search_id: search,
            file_id: FileId::from_uuid(Uuid::nil()),
            position,
            name: String::new(),
            object: object.clone(),
            parts: Vec::new(),
            announced_at: None,
        };
        let files: Vec<ParsedFile> = (0..250).map(file).collect();
        let (listing, mut after, mut pages) = (Nothing::default(), None, 0);
        let limit = PageLimit { items: 10, bytes: PAGE_BYTES, is_begun: false };
        loop {
            let before = listing.0.load(Ordering::Relaxed);
            let found = page(&listing, &files, after, limit).await.unwrap();
            assert!(listing.0.load(Ordering::Relaxed) - before <= MAX_COST);
            pages += 1;
            after = found.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((pages, listing.0.into_inner()), (3, 250));
    }
}
