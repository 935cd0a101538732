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
    /// The number of reads of the store.
    pub(super) reads: usize,
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
            let Readable { items: read, damaged, last } =
                readable(place.record, batch, S::record, read).await?;
            let Some(last) = last else { break };
            if page.reads == READS {
                return Ok(Page { next: Some(place), ..page });
            }
            page.reads += 1;
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
