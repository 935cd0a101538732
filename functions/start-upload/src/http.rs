//! The function's face: two requests, JSON in and out, errors as problem details (RFC 9457).

use contracts::store::chain;
use contracts::{ProjectId, SearchId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Error, NewSearch, StartUpload};

/// The largest request body read, in bytes: 50 names of 255 characters fit several times.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// What is answered to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// The media type of `body`.
    pub content_type: &'static str,
    /// The body.
    pub body: Value,
}

/// Answers `POST /projects/{project}/searches` and `GET /searches/{search}`.
pub async fn respond(function: &StartUpload, method: &str, path: &str, body: &[u8]) -> Response {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method, parts.as_slice()) {
        ("POST", ["projects", project, "searches"]) => create(function, project, body).await,
        ("GET", ["searches", search]) => status(function, search).await,
        (_, ["projects", _, "searches"] | ["searches", _]) => {
            problem(405, "this method is not supported here")
        }
        _ => problem(404, "there is nothing at this path"),
    }
}

async fn create(function: &StartUpload, project: &str, body: &[u8]) -> Response {
    let Ok(project_id) = project.parse::<ProjectId>() else {
        return problem(400, "the project id in the path is not a UUID");
    };
    if body.len() > MAX_BODY_BYTES {
        return problem(413, "the request is too large");
    }
    let request: NewSearch = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return problem(400, &format!("the request is not a search: {error}")),
    };
    match function.create(project_id, &request).await {
        Ok(announced) => ok(201, &announced),
        Err(Error::Invalid(faults)) => {
            let mut response = problem(422, "the manifest is not valid");
            let describe = |fault: &contracts::manifest::ManifestFault| json!({ "detail": fault.to_string(), "file": fault.file_index() });
            response.body["errors"] = faults.iter().map(describe).collect();
            response
        }
        Err(error) => unavailable(&error),
    }
}

async fn status(function: &StartUpload, search: &str) -> Response {
    let Ok(search_id) = search.parse::<SearchId>() else {
        return problem(400, "the search id in the path is not a UUID");
    };
    match function.status(search_id).await {
        Ok(Some(job)) => ok(200, &job),
        Ok(None) => problem(404, "there is no such search"),
        Err(error) => unavailable(&error),
    }
}

fn ok(status: u16, body: &impl Serialize) -> Response {
    match serde_json::to_value(body) {
        Ok(body) => Response { status, content_type: "application/json", body },
        Err(error) => unavailable(&error),
    }
}

/// The cause goes to the log, not to whoever asked.
fn unavailable(error: &(dyn std::error::Error + 'static)) -> Response {
    tracing::error!(error = chain(error), "a request failed");
    problem(503, "the service cannot answer at the moment; please try again")
}

fn problem(status: u16, detail: &str) -> Response {
    let body = json!({ "type": "about:blank", "status": status, "detail": detail });
    Response { status, content_type: "application/problem+json", body }
}
