//! A page for browsers, served from memory, with the headers that keep untrusted text from being executed.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// The content security policy. The page loads and requests only resources of this server, only Svelte's templates
/// create HTML, and no other page can embed it (<https://www.w3.org/TR/CSP3/>, <https://www.w3.org/TR/trusted-types/>).
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
/// The folder of files that the build names by their content, so that they never change.
const NAMED_BY_CONTENT: &str = "assets/";
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// A file of a page.
#[derive(Debug, Clone)]
pub struct PageFile {
    /// The path of the file below the page, such as `assets/index-1a2b.js`; `index.html` is the page itself.
    pub path: String,
    /// The content of the file, compressed with gzip if `is_gzip`.
    pub bytes: Cow<'static, [u8]>,
    /// `true` if the file is compressed, which every browser accepts.
    pub is_gzip: bool,
    /// The tag of the file's content.
    pub tag: String,
}

impl PageFile {
    /// Returns the path at which the server serves this file.
    pub fn address(&self) -> String {
        if self.path == "index.html" { "/".to_owned() } else { format!("/{}", self.path) }
    }
}

/// Returns the routes of a page: `index.html` at `/`, and each other file at its path.
pub fn page(files: impl IntoIterator<Item = PageFile>) -> Router {
    files.into_iter().fold(Router::new(), |router, file| {
        let file = Arc::new(file);
        router.route(&file.address(), get(async move |headers: HeaderMap| answer(&file, &headers)))
    })
}

fn answer(file: &PageFile, asked: &HeaderMap) -> Response<Body> {
    let cache = if file.path.starts_with(NAMED_BY_CONTENT) { IMMUTABLE } else { REVALIDATE };
    let tag = format!("\"{}\"", file.tag);
    let is_known = asked.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = match &file.bytes {
            Cow::Borrowed(bytes) => Body::from(*bytes),
            Cow::Owned(bytes) => Body::from(bytes.clone()),
        };
        Response::new(body)
    };
    let headers = response.headers_mut();
    if file.is_gzip && !is_known {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(&file.path)));
    headers.insert(header::CACHE_CONTROL, cache);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    // A hexadecimal number is always a valid value.
    headers.extend(HeaderValue::from_str(&tag).ok().map(|tag| (header::ETAG, tag)));
    response
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;
    use tower::ServiceExt;

    use super::*;

    fn file(path: &str, is_gzip: bool) -> PageFile {
        PageFile { path: path.to_owned(), bytes: b"text"[..].into(), is_gzip, tag: "ab12".to_owned() }
    }

    async fn asked(path: &str, known: &str) -> Response<Body> {
        let files = [file("index.html", false), file("assets/index-1a2b.js", true)];
        let request =
            Request::builder().uri(path).header("if-none-match", known).body(Body::empty()).unwrap();
        page(files).oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn page_has_strict_policy_and_is_revalidated() {
        let answer = asked("/", "").await;
        assert_eq!(answer.status(), StatusCode::OK);
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';") && policy.contains("trusted-types"), "{policy}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(answer.headers()["cache-control"], "no-cache");
        assert_eq!(answer.headers()["cross-origin-opener-policy"], "same-origin");
        assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
        assert!(!answer.headers().contains_key("content-encoding"));
    }

    #[tokio::test]
    async fn content_named_files_are_cached_forever() {
        let answer = asked("/assets/index-1a2b.js", "").await;
        assert_eq!(answer.headers()["cache-control"], "public, max-age=31536000, immutable");
        assert_eq!(answer.headers()["content-encoding"], "gzip");
    }

    #[tokio::test]
    async fn known_tag_returns_not_modified() {
        assert_eq!(asked("/", "\"ab12\"").await.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(asked("/index.html", "").await.status(), StatusCode::NOT_FOUND);
    }
}
