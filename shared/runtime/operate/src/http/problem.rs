//! Error responses: problem details (RFC 9457).

use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use messages::StoreError;
use messages::store::chain;
use saga::failures::RequestRefusal;
use saga::{AccessError, ControlError, MissingSetting, SendEventError};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

/// The errors of requests that read.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "it only describes answers")]
pub enum CommonErrors {
    /// The request cannot be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Bad(Problem),
    /// The caller is not an operator of the deployment.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// The path names something that does not exist.
    #[response(status = 404, content_type = "application/problem+json")]
    Absent(Problem),
    /// The service is temporarily unavailable; try again.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}

/// The errors of requests with a body.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "it only describes answers")]
pub(super) enum BodyErrors {
    /// The body is too large.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(Problem),
    /// The body is not of type `application/json`.
    #[response(status = 415, content_type = "application/problem+json")]
    OtherType(Problem),
}

/// Problem details (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status identifies the type of problem.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The phrase of the status.
    title: &'static str,
    /// The HTTP status code.
    status: u16,
    /// A description of the problem for the client.
    detail: String,
}

impl Problem {
    /// Returns a problem with a status.
    pub fn new(status: StatusCode, detail: &str) -> Self {
        let title = status.canonical_reason().unwrap_or("Problem");
        Self { kind: "about:blank", title, status: status.as_u16(), detail: detail.to_owned() }
    }

    /// Returns the problem of a request that cannot be read.
    pub fn bad(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Returns the problem of a caller who is not an operator.
    pub fn not_operator() -> Self {
        Self::new(StatusCode::FORBIDDEN, "this is for operators of the deployment")
    }

    /// Returns the problem of a body that is too large, not JSON, or JSON of another type.
    pub fn unreadable(rejection: &JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request is not of type application/json")
            }
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large")
            }
            _ => Self::bad(&format!("the request cannot be read: {}", rejection.body_text())),
        }
    }

    /// Logs the error. The client does not receive the cause.
    pub fn unavailable(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = chain(error), "a request failed");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the service is temporarily unavailable; try again")
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the description for the client.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<MissingSetting> for Problem {
    fn from(error: MissingSetting) -> Self {
        Self::unavailable(&error)
    }
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<RequestRefusal> for Problem {
    fn from(refused: RequestRefusal) -> Self {
        let status = match &refused {
            RequestRefusal::Store(error) => return Self::unavailable(error),
            RequestRefusal::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            RequestRefusal::Unknown(_) => StatusCode::NOT_FOUND,
            RequestRefusal::Not { .. }
            | RequestRefusal::Nothing
            | RequestRefusal::Busy(_)
            | RequestRefusal::NotRunning(_)
            | RequestRefusal::Overtaken => StatusCode::CONFLICT,
        };
        Self::new(status, &refused.to_string())
    }
}

impl From<ControlError> for Problem {
    fn from(refused: ControlError) -> Self {
        let status = match &refused {
            ControlError::Unknown(_) => StatusCode::NOT_FOUND,
            ControlError::Ended(_) | ControlError::Busy(_) => StatusCode::CONFLICT,
            ControlError::Missing(_) | ControlError::Store(_) => return Self::unavailable(&refused),
        };
        Self::new(status, &refused.to_string())
    }
}

impl From<SendEventError> for Problem {
    fn from(refused: SendEventError) -> Self {
        let status = match &refused {
            SendEventError::UnknownInstance(_) => StatusCode::NOT_FOUND,
            SendEventError::OtherSaga(..) | SendEventError::Ended(_) | SendEventError::KeyInUse(_) => {
                StatusCode::CONFLICT
            }
            SendEventError::UnknownEvent { .. }
            | SendEventError::SeveralSagas { .. }
            | SendEventError::Unreadable(_)
            | SendEventError::Stage(_) => StatusCode::UNPROCESSABLE_ENTITY,
            SendEventError::Missing(_) | SendEventError::Store(_) | SendEventError::Commit(_) => {
                return Self::unavailable(&refused);
            }
        };
        Self::new(status, &refused.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Text and numbers are always JSON.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        (self.status(), [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}
