//! Error responses: problem details (RFC 9457).

use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use imports::manifest::ManifestFault;
use imports::{DamagedRecord, SearchId};
use messages::StoreError;
use messages::store::chain;
use operate::http::problem::Problem as OperatorProblem;
use outbox::session::CommitError;
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};
use uuid::Uuid;

use service::{Error, FileRefusal, Refusal};

/// The errors of requests that read.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "it only describes answers")]
pub(super) enum CommonErrors {
    /// The request cannot be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Bad(#[to_schema] Problem),
    /// The role of the caller in the review does not permit the request.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// The path or the query names something that does not exist or that the caller cannot access.
    #[response(status = 404, content_type = "application/problem+json")]
    Absent(#[to_schema] Problem),
    /// A stored record is damaged.
    #[response(status = 409, content_type = "application/problem+json")]
    Damaged(#[to_schema] Problem),
    /// The service is temporarily unavailable; try again.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

/// The errors of requests with a body.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "it only describes answers")]
pub(super) enum BodyErrors {
    /// The body is too large.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(#[to_schema] Problem),
    /// The body is not of type `application/json`.
    #[response(status = 415, content_type = "application/problem+json")]
    OtherType(#[to_schema] Problem),
}

/// Problem details (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Always `about:blank`: the status identifies the type of problem.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The phrase of the status.
    title: &'static str,
    /// The HTTP status code.
    status: u16,
    /// A description of the problem for the client.
    detail: String,
    /// The import of the request's idempotency key, if it ended before all files arrived. A request with a new key
    /// announces another import.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_import: Option<Uuid>,
    /// Problems with individual files of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault>,
}

/// A problem with a file of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Fault {
    /// A description of the problem.
    detail: String,
    /// The index of the file in the request, from 0; absent if the problem concerns all files.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<usize>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: &str) -> Self {
        let title = status.canonical_reason().unwrap_or("Problem");
        Self {
            kind: "about:blank",
            title,
            status: status.as_u16(),
            detail: detail.to_owned(),
            ended_import: None,
            errors: Vec::new(),
        }
    }

    pub(super) fn bad(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn no_such_project() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such review")
    }

    pub(super) fn no_such_search() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such import")
    }

    pub(super) fn role_too_low() -> Self {
        let detail =
            "your role in the review does not permit this; ask an owner of the review for another role";
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// Returns the problem of a body that is too large, not JSON, or JSON of another type.
    pub(super) fn unreadable(rejection: &JsonRejection, what: &str) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large")
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request is not of type application/json")
            }
            _ => Self::bad(&format!("the request is not {what}: {}", rejection.body_text())),
        }
    }

    /// Logs the error. The client does not receive the cause.
    pub(super) fn unavailable(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = chain(error), "a request failed");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the service is temporarily unavailable; try again")
    }

    /// Returns the problem of a request that a damaged record prevents. A repetition fails again until the record is
    /// restored or deleted.
    pub(super) fn damaged(detail: &str) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// Returns the problem of a repeated request whose import ended before all files arrived.
    pub(super) fn ended(search: SearchId) -> Self {
        let problem = Self::new(StatusCode::CONFLICT, &Refusal::Ended(search).to_string());
        Self { ended_import: Some(search.as_uuid()), ..problem }
    }

    /// Returns the problem of a repair that was refused.
    pub(super) fn not_repaired(refusal: &Refusal) -> Self {
        if let Refusal::Ended(search) = refusal {
            return Self::ended(*search);
        }
        let is_of_request = refusal.is_of_request();
        let status = if is_of_request { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::CONFLICT };
        let errors = match refusal {
            Refusal::Files(refused) => refused.as_slice(),
            _ => &[],
        };
        let fault =
            |(file, refusal): &(usize, FileRefusal)| Fault { detail: refusal.to_string(), file: Some(*file) };
        Self { errors: errors.iter().map(fault).collect(), ..Self::new(status, &refusal.to_string()) }
    }

    fn invalid(faults: &[ManifestFault]) -> Self {
        let fault = |fault: &ManifestFault| Fault { detail: fault.to_string(), file: fault.file_index() };
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "the manifest is not valid");
        Self { errors: faults.iter().map(fault).collect(), ..problem }
    }
}

impl From<OperatorProblem> for Problem {
    fn from(problem: OperatorProblem) -> Self {
        Self::new(problem.status(), problem.detail())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let Some(damaged) = DamagedRecord::of(&error) else { return Self::unavailable(&error) };
        tracing::error!(error = chain(&error), "a stored record is damaged");
        let record = damaged.record;
        Self::damaged(&format!(
            "record {record} is damaged; restore a backup, or delete its import and upload its files again"
        ))
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match &error {
            Error::Invalid(faults) => Self::invalid(faults),
            Error::Commit(CommitError::TooLate) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "storing the request took too long, and nothing is stored; send it again, with the same \
                 idempotency key if it has one",
            ),
            Error::TooMany { .. } | Error::TooMuch { .. } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                &format!("{error}; wait until some have ended, or cancel some"),
            ),
            Error::Store(_) | Error::Stage(_) | Error::Commit(_) => Self::unavailable(&error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Text and numbers are always JSON.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}
