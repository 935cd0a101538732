//! The key that the distribution of the page adds to requests, so that clients cannot bypass its firewall.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use lambda_http::request::RequestContext;
use sha2::{Digest, Sha256};

use super::problem::Problem;

/// The header with the key. CloudFront replaces the header if a viewer sends it
/// (<https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/add-origin-custom-headers.html>).
const HEADER: &str = "x-page-key";

/// The key of the page's distribution, known by its hash.
#[derive(Debug, Clone)]
pub struct PageKey {
    sha256: String,
}

impl PageKey {
    /// Returns the key with this SHA-256 hash, in lower-case hexadecimal digits.
    pub const fn with_sha256(sha256: String) -> Self {
        Self { sha256 }
    }

    /// Refuses all requests without the key, except those of callers that may invoke the function itself.
    pub fn required_by(self, router: Router) -> Router {
        router.layer(from_fn_with_state(self, require))
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut keys = headers.get_all(HEADER).iter();
        match (keys.next(), keys.next()) {
            (Some(key), None) => hex(&Sha256::digest(key)) == self.sha256,
            _ => false,
        }
    }
}

async fn require(State(key): State<PageKey>, request: Request, next: Next) -> Response {
    if is_invoked(&request) || key.is_in(request.headers()) {
        return next.run(request).await;
    }
    let detail = "requests are accepted at the address of the page only";
    Problem::new(StatusCode::FORBIDDEN, detail).into_response()
}

/// Returns `true` if the request names no API. API Gateway always does, so an operator or the test of a new version has
/// invoked the function, which requires the permission to do so.
fn is_invoked(request: &Request) -> bool {
    let context = request.extensions().get::<RequestContext>();
    matches!(context, Some(RequestContext::ApiGatewayV2(context)) if context.apiid.is_none())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
