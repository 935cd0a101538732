//! Answers that a client which polls has already.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use uuid::Uuid;

use super::problem::Problem;

/// A body with the tag of what it says; none of it when that is what the client has.
pub(super) fn answer(headers: &HeaderMap, body: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_vec(body).map_err(|error| Problem::unavailable(&error))?;
    let tag = format!("\"{}\"", Uuid::new_v5(&Uuid::NAMESPACE_OID, &body).simple());
    // The client may keep it, and has to ask whether it still holds.
    let kept = (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if has(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)], [kept]).into_response());
    }
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([(header::ETAG, tag)], [kept, json], body).into_response())
}

/// Whether one of the tags that a client has is this one, weak or not, as RFC 9110 compares them here.
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(known: &[String], body: &str) -> (StatusCode, String) {
        let mut headers = HeaderMap::new();
        for known in known {
            headers.append(header::IF_NONE_MATCH, known.parse().unwrap());
        }
        let answer = answer(&headers, &body).unwrap();
        (answer.status(), answer.headers()[header::ETAG].to_str().unwrap().to_owned())
    }

    #[test]
    fn what_a_client_has_is_not_sent_again() {
        let (first, tag) = status(&[], "a");
        assert_eq!(first, StatusCode::OK);
        for known in [tag.clone(), format!("W/{tag}"), format!("\"b\", {tag}"), "*".to_owned()] {
            assert_eq!(status(std::slice::from_ref(&known), "a").0, StatusCode::NOT_MODIFIED, "{known}");
        }
        assert_eq!(status(&["\"b\"".to_owned(), tag.clone()], "a").0, StatusCode::NOT_MODIFIED);
        assert_eq!(status(&[tag], "b").0, StatusCode::OK);
    }
}
