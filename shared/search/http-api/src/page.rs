//! Pages over the files of a search, in the order of files and records, with limits on the work for one page.

use async_trait::async_trait;
use imports::ParsedFile;
use messages::StoreError;

use serde_json::value::RawValue;

use service::study_view::RecordPlace;

/// The number of bytes that one read of the store returns, plus up to one record.
pub(super) const READ_BYTES: usize = 1 << 20;
/// The maximum number of records that one read of the store returns.
pub(super) const READ_RECORDS: usize = 500;
/// The maximum number of reads for one page. It bounds how many records a filter examines.
pub(super) const READS: usize = 20;

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

    /// Returns up to `limit` items after a record, and about [`READ_BYTES`]; an empty list if there are no more.
    async fn read(&self, file: &ParsedFile, after: u64, limit: usize) -> Result<Vec<Self::Item>, StoreError>;

    /// Returns the record number of an item.
    fn record(item: &Self::Item) -> u64;

    /// Returns the JSON of an item, or `None` if it is filtered out.
    async fn show(&self, file: &ParsedFile, item: Self::Item) -> Result<Option<Box<RawValue>>, StoreError>;
}

/// The limits of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageLimit {
    pub(super) items: usize,
    /// The maximum size of the JSON; a larger item forms a separate page.
    pub(super) bytes: usize,
}

/// A page of a listing.
pub(super) struct Page {
    pub(super) items: Vec<Box<RawValue>>,
    /// The cursor of its end, if more may follow.
    pub(super) next: Option<RecordPlace>,
    /// The number of reads of the store.
    pub(super) reads: usize,
}

/// Returns the next page of a listing after the cursor. It may be short, or empty, even if more items follow.
pub(super) async fn page<S: Listing>(
    listing: &S,
    files: &[ParsedFile],
    after: Option<RecordPlace>,
    limit: PageLimit,
) -> Result<Page, StoreError> {
    let mut place = after.unwrap_or_default();
    let (mut items, mut bytes, mut reads) = (Vec::new(), 0_usize, 0_usize);
    let begin = place.position;
    for file in files.iter().filter(|file| file.position >= begin) {
        if file.position > place.position {
            place = RecordPlace { position: file.position, record: 0 };
        }
        loop {
            let batch = limit.items.saturating_add(1).min(READ_RECORDS);
            let read = listing.read(file, place.record, batch).await?;
            if read.is_empty() {
                break;
            }
            if reads == READS {
                return Ok(Page { items, next: Some(place), reads });
            }
            reads += 1;
            for item in read {
                let record = S::record(&item);
                if let Some(shown) = listing.show(file, item).await? {
                    let more = shown.get().len();
                    let is_full = !items.is_empty() && bytes.saturating_add(more) > limit.bytes;
                    if is_full || items.len() == limit.items {
                        return Ok(Page { items, next: Some(place), reads });
                    }
                    bytes = bytes.saturating_add(more);
                    items.push(shown);
                }
                place.record = record;
            }
        }
    }
    Ok(Page { items, next: None, reads })
}
