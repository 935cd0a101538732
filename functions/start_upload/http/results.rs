//! What was found in the files of a search: studies, duplicates, and records that could not be read.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream::{self, Stream};
use imports::{FileId, ParsedFile, Quarantined, SearchId, Selection, Study};
use messages::StoreError;
use messages::store::chain;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::IntoParams;
use uuid::Uuid;

use super::asked::{AskedRecord, AskedSearch};
use super::paging::{self, List, RecordPlace};
use super::problem::{Problem, Refused};
use super::study::{
    PageBody, PairList, PairView, StudyDetail, StudyList, StudyView, UnreadDetail, UnreadList, UnreadView,
};
use super::walk::{self, Most, READ_BYTES, Shelf, shown};
use super::{Answer, Answers, Api};
use crate::start_upload::{StartUpload, Stored, Text};

/// How many studies, or unreadable records, a page has by default, and at most.
const PAGE: usize = 100;
pub(super) const MAX_PAGE: usize = 1_000;
/// The same for duplicates, each of which takes a read of its own.
const PAIRS: usize = 50;
pub(super) const MAX_PAIRS: usize = 200;
/// The most JSON of a page, in bytes: answers of a Lambda function have room for 6 MB.
const PAGE_BYTES: usize = 4 << 20;
/// The most of an export that is sent as a whole, in bytes.
const WHOLE_EXPORT_BYTES: usize = 5_000_000;
/// What is made of an export at a time.
const EXPORT_PIECE: Most = Most { items: 500, bytes: 256 * 1024 };

type Asked<T> = Result<Query<T>, QueryRejection>;

fn read<T>(query: Asked<T>) -> Result<T, Problem> {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    Ok(query)
}

/// The studies of a search.
struct Studies<'a> {
    function: &'a StartUpload,
    search: SearchId,
    /// Only those that are marked, or only the others; all of them otherwise.
    marked: Option<bool>,
    text: Option<Text>,
    /// Whether there is room for everything that a study may say.
    unbounded: bool,
}

impl Studies<'_> {
    fn is_wanted(&self, study: &Study) -> bool {
        let reference = &study.reference;
        let has = |text: &Text| {
            let others = [&reference.journal, &reference.doi].into_iter().flatten();
            std::iter::once(&reference.title)
                .chain(&reference.authors)
                .chain(others)
                .any(|in_it| text.is_in(in_it))
        };
        self.marked.is_none_or(|marked| marked == study.duplicate.is_some())
            && self.text.as_ref().is_none_or(has)
    }
}

#[async_trait]
impl Shelf for Studies<'_> {
    type Item = Study;

    async fn read(&self, file: &ParsedFile, after: u64, limit: usize) -> Result<Vec<Study>, StoreError> {
        // Where most of them are left out, more have to be looked at than are wanted.
        let limit = if self.text.is_some() { walk::READ_RECORDS } else { limit };
        let selection = Selection { marked: self.marked == Some(true), after, limit, bytes: READ_BYTES };
        self.function.studies.select(self.search, file.file_id, selection).await
    }

    fn record(study: &Study) -> u64 {
        study.record
    }

    async fn show(&self, file: &ParsedFile, study: Study) -> Result<Option<Box<RawValue>>, StoreError> {
        if !self.is_wanted(&study) {
            return Ok(None);
        }
        let view = StudyView::of(file.position, study);
        shown(&if self.unbounded { view } else { view.bounded()? }).map(Some)
    }
}

/// The duplicates of a search, each beside the study that it repeats.
struct Pairs<'a>(Studies<'a>);

#[async_trait]
impl Shelf for Pairs<'_> {
    type Item = Study;

    async fn read(&self, file: &ParsedFile, after: u64, limit: usize) -> Result<Vec<Study>, StoreError> {
        self.0.read(file, after, limit).await
    }

    fn record(study: &Study) -> u64 {
        study.record
    }

    /// One by one, since two may be as large as records are.
    async fn show(&self, file: &ParsedFile, study: Study) -> Result<Option<Box<RawValue>>, StoreError> {
        let Some(duplicate) = study.duplicate else { return Ok(None) };
        let original = self.0.function.study(self.0.search, duplicate.file_id, duplicate.record).await?;
        let original = original.map(|original| StudyView::of(duplicate.position, original).bounded());
        let study = StudyView::of(file.position, study).bounded()?;
        shown(&PairView { study, original: original.transpose()? }).map(Some)
    }
}

/// The records of a search that could not be read.
struct Unread<'a> {
    function: &'a StartUpload,
    search: SearchId,
}

#[async_trait]
impl Shelf for Unread<'_> {
    type Item = Quarantined;

    async fn read(
        &self,
        file: &ParsedFile,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Quarantined>, StoreError> {
        self.function.studies.quarantined(self.search, file.file_id, after, limit).await
    }

    fn record(unread: &Quarantined) -> u64 {
        unread.record.number
    }

    async fn show(
        &self,
        file: &ParsedFile,
        unread: Quarantined,
    ) -> Result<Option<Box<RawValue>>, StoreError> {
        shown(&UnreadView::of(file.position, unread)).map(Some)
    }
}

/// A page of a list, as a client asks for it.
async fn answer(
    shelf: &impl Shelf,
    files: &[ParsedFile],
    list: List,
    (limit, after): (usize, Option<&str>),
) -> Answer {
    let most = Most { items: limit, bytes: PAGE_BYTES };
    let (items, next) = walk::page(shelf, files, list.after(after)?, most).await?;
    Ok(Json(PageBody { items, next: next.map(|next| list.next(&next)) }).into_response())
}

/// The files to look into: the one that is asked for, or all that were read to their end.
fn files(stored: Stored, asked: Option<&str>) -> Result<Vec<ParsedFile>, Problem> {
    let Stored { job, mut files } = stored;
    if let Some(asked) = asked {
        let asked = Uuid::parse_str(asked).map_err(|_| Problem::bad("file is the id of a file"))?;
        let asked = FileId::from_uuid(asked);
        if !job.files.iter().any(|file| file.file_id == asked) {
            return Err(Problem::new(StatusCode::NOT_FOUND, "the search has no such file"));
        }
        files.retain(|file| file.file_id == asked);
    }
    Ok(files)
}

/// Which page of the studies to return, and which studies.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StudiesQuery {
    /// How many studies, from 1 to 1000; 100.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
    /// Only those of the file with this id.
    file: Option<String>,
    /// `only` those that repeat an earlier study, or `none` of them.
    duplicates: Option<String>,
    /// Only those with this in title, authors, journal or DOI, whatever its case; 1 to 255 characters.
    text: Option<String>,
}

/// The studies of the files that were read to their end, in the order of files and records.
///
/// At most 10,000 are looked through for a page, and it has about 4 MB. While files are still being read, a page has what
/// is there at that time.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/studies",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        StudiesQuery,
    ),
    responses((status = 200, description = "Some of them", body = StudyList), Refused),
)]
pub(super) async fn list_studies(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    query: Asked<StudiesQuery>,
) -> Answer {
    let query = read(query)?;
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let marked = match query.duplicates.as_deref() {
        None => None,
        Some("only") => Some(true),
        Some("none") => Some(false),
        Some(_) => return Err(Problem::bad("duplicates is \"only\" or \"none\"")),
    };
    let text = paging::text(query.text.as_deref())?;
    let files = files(asked.stored(&api.function).await?, query.file.as_deref())?;
    let shelf = Studies { function: &api.function, search: asked.search, marked, text, unbounded: false };
    let list = List { of: "studies", owner: asked.search.as_uuid() };
    answer(&shelf, &files, list, (limit, query.after.as_deref())).await
}

/// One study, and the text that it was read from.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/studies/{study}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        ("study" = String, Path, description = "The `id` of the study, such as `0-17`"),
    ),
    responses((status = 200, description = "The study", body = StudyDetail), Refused),
)]
pub(super) async fn show_study(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    AskedRecord(RecordPlace { position, record }): AskedRecord,
) -> Answer {
    let absent = || Problem::new(StatusCode::NOT_FOUND, "there is no such study");
    let stored = asked.stored(&api.function).await?;
    let (file, encoding) = stored.file(position).ok_or_else(absent)?;
    let study = api.function.study(asked.search, file.file_id, record).await?.ok_or_else(absent)?;
    let raw = api.function.raw(file, encoding, study.bytes.clone()).await?;
    Ok(Json(StudyDetail { study: StudyView::of(position, study).bounded()?, raw: raw.into() })
        .into_response())
}

/// Which page of the unreadable records to return, and of which file.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UnreadQuery {
    /// How many records, from 1 to 1000; 100.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
    /// Only those of the file with this id.
    file: Option<String>,
}

/// The records that could not be read, of the files that were read to their end, in the order of files and records.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/quarantine",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        UnreadQuery,
    ),
    responses((status = 200, description = "Some of them", body = UnreadList), Refused),
)]
pub(super) async fn list_unread(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    query: Asked<UnreadQuery>,
) -> Answer {
    let query = read(query)?;
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let files = files(asked.stored(&api.function).await?, query.file.as_deref())?;
    let shelf = Unread { function: &api.function, search: asked.search };
    let list = List { of: "quarantine", owner: asked.search.as_uuid() };
    answer(&shelf, &files, list, (limit, query.after.as_deref())).await
}

/// One record that could not be read, and its text.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/quarantine/{record}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        ("record" = String, Path, description = "The `id` of the record, such as `0-18`"),
    ),
    responses((status = 200, description = "The record", body = UnreadDetail), Refused),
)]
pub(super) async fn show_unread(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    AskedRecord(RecordPlace { position, record }): AskedRecord,
) -> Answer {
    let absent = || Problem::new(StatusCode::NOT_FOUND, "there is no such unreadable record");
    let stored = asked.stored(&api.function).await?;
    let (file, encoding) = stored.file(position).ok_or_else(absent)?;
    let mut found = api.function.studies.quarantined(asked.search, file.file_id, record - 1, 1).await?;
    let unread = found.pop().filter(|unread| unread.record.number == record).ok_or_else(absent)?;
    let raw = api.function.raw(file, encoding, Some(unread.record.bytes.clone())).await?;
    Ok(Json(UnreadDetail { unread: UnreadView::of(position, unread), raw: raw.into() }).into_response())
}

/// Which page of the duplicates to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DuplicatesQuery {
    /// How many duplicates, from 1 to 200; 50.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

/// The studies that repeat an earlier one of the search, each beside that one, in the order of files and records.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/duplicates",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        DuplicatesQuery,
    ),
    responses((status = 200, description = "Some of them", body = PairList), Refused),
)]
pub(super) async fn list_duplicates(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    query: Asked<DuplicatesQuery>,
) -> Answer {
    let query = read(query)?;
    let limit = paging::limit(query.limit, PAIRS, MAX_PAIRS)?;
    let files = files(asked.stored(&api.function).await?, None)?;
    let shelf = Pairs(Studies {
        function: &api.function,
        search: asked.search,
        marked: Some(true),
        text: None,
        unbounded: false,
    });
    let list = List { of: "duplicates", owner: asked.search.as_uuid() };
    answer(&shelf, &files, list, (limit, query.after.as_deref())).await
}

/// How to export the studies.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// `jsonl`: a line for each study, with the fields that it has in lists.
    format: Option<String>,
}

/// All studies of the files that were read to their end, a line of JSON each.
///
/// Where answers are not streamed (see `/config.json`), more than 5 MB are refused.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/export",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        ExportQuery,
    ),
    responses(
        (status = 200, description = "All of them", body = StudyView, content_type = "application/jsonl"),
        (status = 413, description = "They are more than can be sent at once; page through the studies instead", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn export_studies(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    query: Asked<ExportQuery>,
) -> Answer {
    if !matches!(read(query)?.format.as_deref(), None | Some("jsonl")) {
        return Err(Problem::bad("format is \"jsonl\""));
    }
    let files = files(asked.stored(&api.function).await?, None)?;
    let mut export = Export { api, search: asked.search, files, place: Some(RecordPlace::default()) };
    let body = match export.api.answers {
        Answers::Streamed => Body::from_stream(export.pieces()),
        Answers::Whole => {
            let mut whole = Vec::new();
            while let Some(piece) = export.next().await? {
                whole.extend(piece);
                if whole.len() > WHOLE_EXPORT_BYTES {
                    let detail = "the export is larger than 5 MB; page through /studies instead";
                    return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
                }
            }
            Body::from(whole)
        }
    };
    let name = HeaderValue::from_static("attachment; filename=\"studies.jsonl\"");
    let kind = HeaderValue::from_static("application/jsonl");
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)], body).into_response())
}

/// An export, of which the next piece is made when the one before is sent.
struct Export {
    api: Arc<Api>,
    search: SearchId,
    files: Vec<ParsedFile>,
    /// After which it goes on, unless it has ended.
    place: Option<RecordPlace>,
}

impl Export {
    /// A store that does not answer any more ends the answer before its end, which the client sees.
    fn pieces(self) -> impl Stream<Item = Result<Vec<u8>, StoreError>> {
        stream::try_unfold(self, async |mut export| {
            let piece = export.next().await.inspect_err(|error| {
                tracing::error!(error = chain(error), "an export broke off");
            })?;
            Ok(piece.map(|piece| (piece, export)))
        })
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(after) = self.place.take() else { return Ok(None) };
        let shelf = Studies {
            function: &self.api.function,
            search: self.search,
            marked: None,
            text: None,
            unbounded: true,
        };
        let (items, next) = walk::page(&shelf, &self.files, Some(after), EXPORT_PIECE).await?;
        self.place = next;
        let mut lines = Vec::new();
        for item in items {
            lines.extend_from_slice(item.get().as_bytes());
            lines.push(b'\n');
        }
        Ok(Some(lines))
    }
}
