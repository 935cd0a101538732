//! Going through what is stored of a search, file by file in the order of records, and leaving off in good time.

use async_trait::async_trait;
use imports::ParsedFile;
use messages::StoreError;

use serde_json::value::RawValue;

use service::study_view::RecordPlace;

/// How much is read of the store at once, in bytes; a record more may be added to it.
pub(super) const READ_BYTES: usize = 1 << 20;
/// The most records that are read of the store at once.
pub(super) const READ_RECORDS: usize = 500;
/// How often the store is read for one page: whatever is looked for, so many records are looked through at most.
const READS: usize = 20;

/// What is listed of a file.
#[async_trait]
pub(super) trait Shelf: Send + Sync {
    type Item: Send;

    /// Up to `limit` items after a record, and about [`READ_BYTES`]; none when there are no more.
    async fn read(&self, file: &ParsedFile, after: u64, limit: usize) -> Result<Vec<Self::Item>, StoreError>;

    /// The record of an item.
    fn record(item: &Self::Item) -> u64;

    /// How an item is shown, if it is wanted.
    async fn show(&self, file: &ParsedFile, item: Self::Item) -> Result<Option<Box<RawValue>>, StoreError>;
}

/// What a page may come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    pub(super) items: usize,
    /// Of JSON; an item that is larger is a page by itself.
    pub(super) bytes: usize,
}

/// A page, and where it ends if anything may follow.
pub(super) type Found = (Vec<Box<RawValue>>, Option<RecordPlace>);

/// A page of what is on a shelf, from after a place. It may be short, or empty, although more follows.
pub(super) async fn page<S: Shelf>(
    shelf: &S,
    files: &[ParsedFile],
    after: Option<RecordPlace>,
    most: Most,
) -> Result<Found, StoreError> {
    let mut place = after.unwrap_or_default();
    let (mut items, mut bytes, mut reads) = (Vec::new(), 0_usize, 0_usize);
    let begin = place.position;
    for file in files.iter().filter(|file| file.position >= begin) {
        if file.position > place.position {
            place = RecordPlace { position: file.position, record: 0 };
        }
        loop {
            let limit = most.items.saturating_add(1).min(READ_RECORDS);
            let read = shelf.read(file, place.record, limit).await?;
            if read.is_empty() {
                break;
            }
            if reads == READS {
                return Ok((items, Some(place)));
            }
            reads += 1;
            for item in read {
                let record = S::record(&item);
                if let Some(shown) = shelf.show(file, item).await? {
                    let more = shown.get().len();
                    let is_full = !items.is_empty() && bytes.saturating_add(more) > most.bytes;
                    if is_full || items.len() == most.items {
                        return Ok((items, Some(place)));
                    }
                    bytes = bytes.saturating_add(more);
                    items.push(shown);
                }
                place.record = record;
            }
        }
    }
    Ok((items, None))
}
