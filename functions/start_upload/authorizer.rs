//! What an API Gateway says of the caller of a request.

use axum::http::Extensions;
use lambda_http::request::RequestContext;

use super::Caller;

/// The caller of a request that `lambda_http` has read: `claim` names the claim of their token that lists their projects;
/// none where callers have no tokens.
pub fn caller(claim: Option<&str>, request: &Extensions) -> Caller {
    let authorizer = request.get::<RequestContext>().and_then(RequestContext::authorizer);
    let token = authorizer.and_then(|authorizer| authorizer.jwt.as_ref());
    Caller::of(claim, token.map(|token| &token.claims))
}
