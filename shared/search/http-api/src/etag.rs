//! Conditional responses for clients that poll.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use uuid::Uuid;

use super::problem::Problem;

/// Returns a response with `body` and its ETag, or 304 without a body if the client has the same content.
pub(super) fn answer(headers: &HeaderMap, body: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_vec(body).map_err(|error| Problem::unavailable(&error))?;
    let tag = format!("\"{}\"", Uuid::new_v5(&Uuid::NAMESPACE_OID, &body).simple());
    // The client may store the response but has to revalidate it.
    let kept = (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if has(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)], [kept]).into_response());
    }
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([(header::ETAG, tag)], [kept, json], body).into_response())
}

/// Returns `true` if one of the client's tags equals `tag`, by the weak comparison of RFC 9110.
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
    fn matching_etag_returns_304() {
        let (first, tag) = status(&[], "a");
        assert_eq!(first, StatusCode::OK);
        for known in [tag.clone(), format!("W/{tag}"), format!("\"b\", {tag}"), "*".to_owned()] {
            assert_eq!(status(std::slice::from_ref(&known), "a").0, StatusCode::NOT_MODIFIED, "{known}");
        }
        assert_eq!(status(&["\"b\"".to_owned(), tag.clone()], "a").0, StatusCode::NOT_MODIFIED);
        assert_eq!(status(&[tag], "b").0, StatusCode::OK);
    }
}
