//! Changes as they happen: Server-Sent Events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//!
//! The id of an event identifies everything that its stream has sent so far. A client that reconnects with the
//! current id receives nothing; with any other id it receives all unfinished and recent searches again, so the server
//! never has to guess what a client has missed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use futures::{Stream, stream};
use imports::{Job, ProjectId, SearchId};
use messages::StoreError;
use messages::store::chain;
use uuid::Uuid;

use super::activity::ActivityView;
use super::extract::{AuthorizedProject, AuthorizedSearch};
use super::problem::{CommonErrors, Problem};
use super::view::{Details, SearchView};
use super::{Api, BodyMode, HttpResult};
use service::{ProjectAccess, SearchFilter, SearchService};

/// The interval at which the stores are polled for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The polling interval after a poll that found changes: while a file is read more changes follow, and are sent
/// sooner.
const ACTIVE_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum time without data. A comment is then sent, so that both sides notice a lost connection.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum number of streams; each one costs a few reads per poll.
const MAX_STREAMS: usize = 64;
/// The maximum number of unfinished searches, and of the latest ones, that the stream of a project includes.
const MAX_OPEN: usize = 100;
const LATEST: usize = 20;
/// The maximum number of ended searches that newer ones have displaced and that the stream of a project still follows.
const MAX_DISPLACED: usize = 100;
/// The time after a change, such as a decision, during which one ended search is read again per poll. The counts of
/// ended searches follow later, and counting takes longer than the rest of a poll.
const RECHECK: Duration = Duration::from_secs(60);
/// The maximum number of entries of a review's history that are sent at once; older ones are skipped.
const MAX_NEWS: usize = 100;
/// The beginning of a stream: the client's reconnection delay, in milliseconds.
const RETRY_DELAY: &[u8] = b"retry: 2000\n\n";
const COMMENT: &[u8] = b":\n\n";
const LAST_EVENT_ID: &str = "last-event-id";

/// Streams the changes of a review's imports as they happen.
///
/// A `search` event has the JSON of a single import. The stream begins with all unfinished imports (up to 100) and the
/// latest 20; after that, it sends an import whenever it changes. Decisions, deletions and repairs also change the
/// counts of ended imports, which usually follow within a minute. A `deleted` event has the `search_id` of a deleted
/// import. An `activity` event has an entry of the history of the review: a decision, or changed sources. The stream
/// has the entries since it was opened. If `live` is `false` in `/config.json`, poll `/projects/{project}/changes`
/// instead.
#[utoipa::path(
    get,
    path = "/projects/{project}/events",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client received"),
    ),
    responses(
        (status = 200, description = "Events, until the client disconnects", body = SearchView, content_type = "text/event-stream"),
        (status = 501, description = "This deployment does not stream", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn follow_project(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    headers: HeaderMap,
) -> HttpResult {
    follow(api, Scope::Project(project), &headers).await
}

/// Streams the changes of one import as they happen, until it has ended or a `deleted` event reports its deletion.
///
/// If the client already has the final state, the response is 204, which stops it from reconnecting.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/events",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client received"),
    ),
    responses(
        (status = 200, description = "Events, until the import has ended or the client disconnects", body = SearchView, content_type = "text/event-stream"),
        (status = 204, description = "The import has ended, and the client has its final state"),
        (status = 501, description = "This deployment does not stream", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn follow_search(
    State(api): State<Arc<Api>>,
    // Rejects callers without access to the project before the search is read.
    AuthorizedProject(_): AuthorizedProject,
    AuthorizedSearch { caller, search }: AuthorizedSearch,
    headers: HeaderMap,
) -> HttpResult {
    follow(api, Scope::Search(caller, search), &headers).await
}

async fn follow(api: Arc<Api>, scope: Scope, headers: &HeaderMap) -> HttpResult {
    // Everything is checked before reading anything: the first poll reads up to 120 searches.
    if api.body_mode == BodyMode::Buffered {
        let detail = "this deployment does not stream changes; poll with ETags instead";
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, detail));
    }
    let slot = StreamSlot::take(&api)?;
    let mut known = SeenSearches::default();
    let first = scope.poll(&api.service, &known, None).await?;
    if matches!(scope, Scope::Search(..)) && first.is_empty() {
        return Err(Problem::no_such_search());
    }
    let seen = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let (text, now) = (changes(&first, &known), SeenSearches::of(&first));
    let is_seen = seen.is_some_and(|seen| now.id() == seen);
    let has_ended = scope.has_ended(&now);
    if is_seen && has_ended {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let activity = match &scope {
        Scope::Project(project) => Some((*project, api.service.activity_count(*project).await?)),
        Scope::Search(..) => None,
    };
    known = now;
    let mut begin = RETRY_DELAY.to_vec();
    begin.extend(text.filter(|_| !is_seen).unwrap_or_default());
    let (begin, pause, quiet) = (Some(begin), POLL_INTERVAL, Duration::ZERO);
    // Marks may still follow from a decision before the stream was opened.
    let (turn, recheck) = (None, RECHECK);
    let live = Live { slot, scope, known, activity, begin, pause, quiet, turn, recheck };
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(live.pieces())).into_response())
}

/// The searches that a stream follows.
enum Scope {
    Project(ProjectId),
    Search(ProjectAccess, SearchId),
}

/// The current state of a search.
struct CurrentSearch {
    search: SearchId,
    stage: Stage,
    tag: Uuid,
    /// The event's data; `None` if the search is unchanged or was not read again.
    json: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Ended,
    /// The search has ended and is not among the latest ones any more.
    Displaced,
    Deleted,
}

/// The ended search that a poll examines in its turn.
#[derive(Clone, Copy)]
struct Turn {
    search: SearchId,
    /// `true` to read the search; otherwise only its deletion is noticed.
    is_read: bool,
}

impl CurrentSearch {
    fn deleted(search: SearchId) -> Self {
        let json = serde_json::json!({ "search_id": search }).to_string().into_bytes();
        Self { search, stage: Stage::Deleted, tag: Uuid::max(), json: Some(json) }
    }

    fn event(&self) -> &'static [u8] {
        match self.stage {
            Stage::Open | Stage::Ended | Stage::Displaced => b"event: search\ndata: ",
            Stage::Deleted => b"event: deleted\ndata: ",
        }
    }
}

impl Scope {
    async fn poll(
        &self,
        function: &SearchService,
        known: &SeenSearches,
        turn: Option<Turn>,
    ) -> Result<Vec<CurrentSearch>, StoreError> {
        let jobs = match self {
            Self::Search(caller, search) => function.find(caller, *search).await?.into_iter().collect(),
            Self::Project(project) => latest_of(function, *project).await?,
        };
        let mut jobs: BTreeMap<SearchId, Job> = jobs.into_iter().map(|job| (job.search_id, job)).collect();
        let mut found = Vec::with_capacity(jobs.len());
        for (&search, &(tag, was)) in &known.0 {
            if jobs.contains_key(&search) {
                continue;
            }
            let turn = turn.filter(|turn| turn.search == search);
            if was == Stage::Displaced && turn.is_none() {
                found.push(CurrentSearch { search, stage: was, tag, json: None });
                continue;
            }
            match (function.find(&self.caller(), search).await?, was) {
                (None, _) => found.push(CurrentSearch::deleted(search)),
                (Some(job), Stage::Open) => drop(jobs.insert(search, job)),
                // The search ended and was displaced by newer searches.
                (Some(job), Stage::Ended | Stage::Displaced | Stage::Deleted) => {
                    let now = match turn {
                        Some(Turn { is_read: true, .. }) => read(function, job).await?,
                        _ => CurrentSearch { search, stage: was, tag, json: None },
                    };
                    found.push(CurrentSearch { stage: Stage::Displaced, ..now });
                }
            }
        }
        let turn = turn.filter(|turn| turn.is_read).map(|turn| turn.search);
        for (search, job) in jobs {
            let ended =
                known.0.get(&search).filter(|(_, was)| matches!(was, Stage::Ended | Stage::Displaced));
            found.push(match ended {
                Some((tag, _)) if turn != Some(search) => {
                    CurrentSearch { search, stage: Stage::Ended, tag: *tag, json: None }
                }
                _ => read(function, job).await?,
            });
        }
        Ok(found)
    }

    fn caller(&self) -> ProjectAccess {
        match self {
            Self::Search(caller, _) => caller.clone(),
            Self::Project(project) => ProjectAccess::to(*project),
        }
    }

    fn has_ended(&self, known: &SeenSearches) -> bool {
        matches!(self, Self::Search(..)) && known.0.values().all(|(_, stage)| *stage == Stage::Ended)
    }
}

/// Returns the unfinished and the latest searches.
async fn latest_of(function: &SearchService, project: ProjectId) -> Result<Vec<Job>, StoreError> {
    let mut jobs = function.jobs.open(project, MAX_OPEN).await?;
    jobs.extend(function.list(project, &SearchFilter::default(), None, LATEST).await?.items);
    Ok(jobs)
}

/// Reads a search with its details.
async fn read(function: &SearchService, job: Job) -> Result<CurrentSearch, StoreError> {
    let search = job.search_id;
    let stage = if job.state.has_ended() { Stage::Ended } else { Stage::Open };
    let progress = function.jobs.progress(search).await?;
    let details = Details::of(function, &job, progress).await?;
    let view = SearchView::of(job, Some(&details));
    let json = serde_json::to_vec(&view)
        .map_err(|error| StoreError::unusable(format!("showing search {search}"), error))?;
    let tag = Uuid::new_v5(&Uuid::NAMESPACE_OID, &json);
    Ok(CurrentSearch { search, stage, tag, json: Some(json) })
}

/// The searches that a client has received: the tag and stage of each, without deleted ones.
#[derive(Default)]
struct SeenSearches(BTreeMap<SearchId, (Uuid, Stage)>);

impl SeenSearches {
    fn of(found: &[CurrentSearch]) -> Self {
        let displaced = found.iter().filter(|found| found.stage == Stage::Displaced).count();
        let mut excess = displaced.saturating_sub(MAX_DISPLACED);
        let is_followed = found.iter().filter(|found| match found.stage {
            Stage::Open | Stage::Ended => true,
            Stage::Displaced if excess > 0 => {
                excess -= 1;
                false
            }
            Stage::Displaced => true,
            Stage::Deleted => false,
        });
        Self(is_followed.map(|found| (found.search, (found.tag, found.stage))).collect())
    }

    /// Returns the event id that identifies this state. A client that reconnects does not follow displaced searches.
    fn id(&self) -> String {
        let current = self.0.iter().filter(|(_, (_, stage))| *stage != Stage::Displaced);
        let pairs = current.flat_map(|(search, (tag, _))| [search.as_uuid(), *tag]);
        let bytes: Vec<u8> = pairs.flat_map(Uuid::into_bytes).collect();
        Uuid::new_v5(&Uuid::NAMESPACE_OID, &bytes).simple().to_string()
    }

    /// Returns the ended search after `last`, beginning again after the last one. Without `is_read`, only displaced ones
    /// take turns, because polls notice the deletion of the others.
    fn turn(&self, last: Option<SearchId>, is_read: bool) -> Option<Turn> {
        let takes_turns = |stage: Stage| stage == Stage::Displaced || (is_read && stage == Stage::Ended);
        let all = || self.0.iter().filter(|(_, (_, stage))| takes_turns(*stage)).map(|(search, _)| *search);
        let search = all().find(|search| Some(*search) > last).or_else(|| all().next())?;
        Some(Turn { search, is_read })
    }

    /// Returns `true` if the counts of ended searches may follow a change: a search is new, has ended, was deleted, or
    /// has other counts.
    fn is_changed(&self, found: &[CurrentSearch]) -> bool {
        found.iter().any(|now| match self.0.get(&now.search) {
            None => true,
            Some((tag, was)) => *was != now.stage || (now.stage != Stage::Open && *tag != now.tag),
        })
    }
}

/// Returns an event for each search that differs from `known`, or `None` if there is none. Only the last event has an
/// id, so a client that misses some of them receives them all again.
fn changes(found: &[CurrentSearch], known: &SeenSearches) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let is_new = |found: &&CurrentSearch| known.0.get(&found.search).is_none_or(|(tag, _)| *tag != found.tag);
    let mut new = found.iter().filter(is_new).filter(|found| found.json.is_some()).peekable();
    new.peek()?;
    while let Some(one) = new.next() {
        if new.peek().is_none() {
            text.extend(format!("id: {}\n", SeenSearches::of(found).id()).into_bytes());
        }
        // Serialized JSON contains no line breaks.
        text.extend_from_slice(one.event());
        text.extend_from_slice(one.json.as_deref().unwrap_or_default());
        text.extend_from_slice(b"\n\n");
    }
    Some(text)
}

/// A slot among the open streams, released when it is dropped.
struct StreamSlot(Arc<Api>);

impl StreamSlot {
    fn take(api: &Arc<Api>) -> Result<Self, Problem> {
        let one_more = |count| (count < MAX_STREAMS).then_some(count + 1);
        match api.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Self(Arc::clone(api))),
            Err(_) => {
                let detail = "too many clients follow changes; poll with ETags instead, or try again";
                Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail))
            }
        }
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the number of open streams.
pub(super) fn count(streams: &AtomicUsize) -> u64 {
    streams.load(Ordering::Relaxed).try_into().unwrap_or(u64::MAX)
}

/// A stream of events. It produces the next chunk once the previous one is sent.
struct Live {
    slot: StreamSlot,
    scope: Scope,
    known: SeenSearches,
    /// The review, and the number of entries in its history that were sent or are older than the stream.
    activity: Option<(ProjectId, u64)>,
    begin: Option<Vec<u8>>,
    /// The time until the next poll.
    pause: Duration,
    /// The time since data was last sent.
    quiet: Duration,
    /// The ended search that was examined last.
    turn: Option<SearchId>,
    /// The time during which ended searches are still read again.
    recheck: Duration,
}

impl Live {
    /// Returns the chunks. If a store becomes unavailable the stream ends, and the client reconnects.
    fn pieces(self) -> impl Stream<Item = Result<Vec<u8>, StoreError>> {
        stream::try_unfold(self, async |mut live| {
            let piece = live.next().await.inspect_err(|error| {
                tracing::error!(error = chain(error), "an event stream ended with an error");
            })?;
            Ok(piece.map(|piece| (piece, live)))
        })
    }

    /// Returns an event for each new entry in the history of the review, or `None` if there is none.
    async fn news(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let Some((project, seen)) = self.activity else { return Ok(None) };
        let function = &self.slot.0.service;
        let count = function.activity_count(project).await?;
        if count <= seen {
            return Ok(None);
        }
        let new = usize::try_from(count - seen).unwrap_or(usize::MAX).min(MAX_NEWS);
        let mut text = Vec::new();
        for (number, entry) in function.activity(project, Some(count), new).await?.items.into_iter().rev() {
            let json = serde_json::to_vec(&ActivityView::of(number, entry))
                .map_err(|error| StoreError::unusable("showing the history of a review", error))?;
            text.extend_from_slice(b"event: activity\ndata: ");
            text.extend_from_slice(&json);
            text.extend_from_slice(b"\n\n");
        }
        self.activity = Some((project, count));
        Ok(Some(text))
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(begin) = self.begin.take() {
            return Ok(Some(begin));
        }
        let api = Arc::clone(&self.slot.0);
        let function = &api.service;
        while !self.scope.has_ended(&self.known) {
            function.host().sleep(self.pause).await;
            self.recheck = self.recheck.saturating_sub(self.pause);
            let turn = self.known.turn(self.turn, !self.recheck.is_zero());
            self.turn = turn.map(|turn| turn.search);
            let found = self.scope.poll(function, &self.known, turn).await?;
            let mut changes = changes(&found, &self.known);
            let news = self.news().await?;
            if news.is_some() || self.known.is_changed(&found) {
                self.recheck = RECHECK;
            }
            if let Some(news) = news {
                changes.get_or_insert_default().extend(news);
            }
            self.known = SeenSearches::of(&found);
            self.quiet += self.pause;
            self.pause = if changes.is_some() { ACTIVE_POLL_INTERVAL } else { POLL_INTERVAL };
            if changes.is_some() || self.quiet >= HEARTBEAT {
                self.quiet = Duration::ZERO;
                return Ok(Some(changes.unwrap_or_else(|| COMMENT.to_vec())));
            }
        }
        Ok(None)
    }
}
