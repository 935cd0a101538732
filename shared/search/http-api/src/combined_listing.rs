//! Pages of a listing over several imports.

use axum::Json;
use axum::response::IntoResponse;
use imports::SearchId;
use outbox::Cursor;
use serde_json::value::RawValue;
use service::study_view::RecordPlace;
use service::{Scope, ScopePlace, SearchService};

use super::HttpResult;
use super::page::{self, Listing, MAX_COST, PAGE_BYTES, Page, PageLimit, PageRequest};
use super::paging::{List, ListCursor};
use super::study::PageBody;

/// The maximum number of imports that are examined for a page.
const SEARCHES: usize = 50;

/// The separators are characters that a URL can contain.
impl ListCursor for ScopePlace {
    fn written(&self) -> String {
        match self {
            Self::In { import, within } => format!("{}~{}", within.written(), import.written()),
            Self::Next { after, within } => {
                let after = after.as_ref().map_or_else(String::new, ListCursor::written);
                format!("{}_{after}", within.written())
            }
        }
    }

    fn read(text: &str) -> Option<Self> {
        if let Some((within, import)) = text.split_once('~') {
            return Some(Self::In { import: Cursor::read(import)?, within: RecordPlace::read(within)? });
        }
        // Earlier versions wrote all positions like this.
        let (within, after) = text.split_once('_')?;
        let after = if after.is_empty() { None } else { Some(Cursor::read(after)?) };
        Some(Self::Next { after, within: RecordPlace::read(within)? })
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
    let mut place: ScopePlace = list.after(after)?.unwrap_or_default();
    let (jobs, mut within) = service.jobs_from(scope, place, SEARCHES).await?;
    let (mut items, mut damaged): (Vec<Box<RawValue>>, Vec<_>) = Default::default();
    let (mut bytes, mut spent, mut seen) = (0, 0, 0);
    for job in &jobs.items {
        if items.len() == limit || spent >= MAX_COST {
            break;
        }
        let files = service.files_in(scope, job).await?;
        let left = PageLimit {
            items: limit - items.len(),
            bytes: PAGE_BYTES.saturating_sub(bytes),
            is_begun: !items.is_empty(),
        };
        let found = page::page(&listing(job.search_id), &files, Some(within), left).await?;
        let Page { items: found, damaged: skipped, next, cost } = found;
        spent += cost;
        damaged.extend(skipped);
        bytes += found.iter().map(|item| item.get().len()).sum::<usize>();
        items.extend(found);
        if let Some(within) = next {
            let next = Some(list.next(&ScopePlace::within(job, within)));
            return Ok(Json(PageBody { items, damaged, next }).into_response());
        }
        (place, within) = (ScopePlace::after(job), RecordPlace::default());
        seen += 1;
    }
    let is_end = seen == jobs.items.len();
    let next = if is_end { jobs.next.map(ScopePlace::after_cursor) } else { Some(place) };
    let next = next.map(|place| list.next(&place));
    Ok(Json(PageBody { items, damaged, next }).into_response())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn places_round_trip_and_earlier_cursors_are_read() {
        let id = SearchId::from_uuid(Uuid::from_u128(7));
        let import = Cursor { created_at: Timestamp::from_nanosecond(5).unwrap(), partition: id };
        let within = RecordPlace { position: 3, record: 17 };
        let start = RecordPlace::default();
        for (place, written) in [
            (ScopePlace::In { import, within }, format!("3-17~5.{id}")),
            (ScopePlace::Next { after: Some(import), within: start }, format!("0-0_5.{id}")),
            (ScopePlace::Next { after: Some(import), within }, format!("3-17_5.{id}")),
            (ScopePlace::Next { after: None, within }, "3-17_".to_owned()),
        ] {
            assert_eq!(place.written(), written);
            assert_eq!(ScopePlace::read(&written), Some(place));
        }
        for wrong in ["", "~", "3-17", "3-17~", "3~5.x", &format!("+3-17~5.{id}"), &format!("3-17~_5.{id}")] {
            assert_eq!(ScopePlace::read(wrong), None, "{wrong}");
        }
    }
}
