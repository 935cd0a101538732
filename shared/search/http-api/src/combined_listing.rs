//! Pages of a listing over several imports.

use axum::Json;
use axum::response::IntoResponse;
use imports::SearchId;
use outbox::Cursor;
use serde_json::value::RawValue;
use service::study_view::RecordPlace;
use service::{Scope, SearchService};

use super::HttpResult;
use super::page::{self, Listing, PAGE_BYTES, Page, PageLimit, PageRequest, READS};
use super::paging::{List, ListCursor};
use super::study::PageBody;

/// The maximum number of imports that are examined for a page.
const SEARCHES: usize = 50;

/// A cursor in a listing: a position in the import that follows `after`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CombinedCursor {
    pub(super) after: Option<Cursor>,
    pub(super) within: RecordPlace,
}

impl ListCursor for CombinedCursor {
    fn written(&self) -> String {
        let after = self.after.as_ref().map_or_else(String::new, ListCursor::written);
        format!("{}_{after}", self.within.written())
    }

    fn read(text: &str) -> Option<Self> {
        let (within, after) = text.split_once('_')?;
        let after = if after.is_empty() { None } else { Some(Cursor::read(after)?) };
        Some(Self { after, within: RecordPlace::read(within)? })
    }
}

/// Responds with a page of a listing over the imports of a scope, in their order. `listing` returns that of one import.
/// The page may be short or empty even if more items follow.
pub(super) async fn answer<L: Listing>(
    service: &SearchService,
    scope: &Scope,
    listing: impl Fn(SearchId) -> L,
    list: List,
    PageRequest { limit, after }: PageRequest<'_>,
) -> HttpResult {
    let mut cursor: CombinedCursor = list.after(after)?.unwrap_or_default();
    let jobs = service.jobs_of(scope, cursor.after, SEARCHES).await?;
    let (mut items, mut damaged): (Vec<Box<RawValue>>, Vec<_>) = Default::default();
    let (mut bytes, mut reads, mut seen) = (0, 0, 0);
    for job in &jobs.items {
        if items.len() == limit || reads >= READS {
            break;
        }
        let files = service.files_in(scope, job).await?;
        let left = PageLimit { items: limit - items.len(), bytes: PAGE_BYTES.saturating_sub(bytes) };
        let found = page::page(&listing(job.search_id), &files, Some(cursor.within), left).await?;
        let Page { items: found, damaged: skipped, next, reads: read } = found;
        reads += read;
        damaged.extend(skipped);
        bytes += found.iter().map(|item| item.get().len()).sum::<usize>();
        items.extend(found);
        if let Some(within) = next {
            let next = Some(list.next(&CombinedCursor { within, ..cursor }));
            return Ok(Json(PageBody { items, damaged, next }).into_response());
        }
        let after = Cursor { created_at: job.created_at, partition: job.search_id };
        cursor = CombinedCursor { after: Some(after), within: RecordPlace::default() };
        seen += 1;
    }
    let is_last = jobs.next.is_none() && seen == jobs.items.len();
    let next = (!is_last).then(|| list.next(&cursor));
    Ok(Json(PageBody { items, damaged, next }).into_response())
}
