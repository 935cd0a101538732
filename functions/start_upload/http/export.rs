//! All studies of a search at once.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream::{self, Stream};
use imports::{ParsedFile, SearchId};
use messages::StoreError;
use messages::store::chain;
use serde::Deserialize;
use utoipa::IntoParams;

use super::asked::AskedSearch;
use super::paging::RecordPlace;
use super::problem::{Problem, Refused};
use super::results::{Asked, files, read};
use super::shelves::Studies;
use super::study::StudyView;
use super::walk::{self, Most};
use super::{Answer, Answers, Api};

/// The most of an export that is sent as a whole, in bytes.
const WHOLE_EXPORT_BYTES: usize = 5_000_000;
/// What is made of an export at a time.
const EXPORT_PIECE: Most = Most { items: 500, bytes: 256 * 1024 };

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
