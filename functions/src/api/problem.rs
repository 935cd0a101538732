//! What went wrong, as RFC 9457 has it.

use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use imports::manifest::ManifestFault;
use messages::StoreError;
use messages::store::chain;
use outbox::session::CommitError;
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use service::{Error, FileRefusal, Refusal};

/// How a request may be refused that reads.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "it only describes answers")]
pub(super) enum Refused {
    /// The request cannot be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Bad(#[to_schema] Problem),
    /// What the path or the query names is not there, or it is not the caller's.
    #[response(status = 404, content_type = "application/problem+json")]
    Absent(#[to_schema] Problem),
    /// Try again.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Always `about:blank`: the status says what kind it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The HTTP status code.
    status: u16,
    /// What is wrong, in words for the client.
    detail: String,
    /// What is wrong with the files of a request, one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault>,
}

/// One thing that is wrong with the files of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Fault {
    /// In words.
    detail: String,
    /// Which file it is about, from 0; none when it is about all.
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
            errors: Vec::new(),
        }
    }

    pub(super) fn bad(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn no_such_project() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such project")
    }

    pub(super) fn no_such_search() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such search")
    }

    /// A body that is too large, no JSON, or not the JSON of what it should be.
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

    /// The cause goes to the log, not to the client.
    pub(super) fn unavailable(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = chain(error), "a request failed");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the service cannot answer at the moment; please try again",
        )
    }

    /// A search that is not repaired as a request asks for it.
    pub(super) fn not_repaired(refusal: &Refusal) -> Self {
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

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error)
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
                &format!("{error}; wait until some have ended, or withdraw some"),
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
