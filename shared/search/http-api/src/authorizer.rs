//! Principals of requests that arrive through API Gateway.

use axum::http::Extensions;
use lambda_http::request::RequestContext;

use service::caller::identity;
use service::{Operator, Principal, ProjectAccess};

/// Returns the principal of a request that `lambda_http` has read.
///
/// `claim` names the token claim that lists the caller's projects; `None` if callers have no tokens. `scope` is the
/// scope of operators. A caller who signs requests is named by the ARN of the signer.
pub fn caller(claim: Option<&str>, scope: &str, request: &Extensions) -> Principal {
    let authorizer = request.get::<RequestContext>().and_then(RequestContext::authorizer);
    let token = authorizer.and_then(|authorizer| authorizer.jwt.as_ref());
    let claims = token.map(|token| &token.claims);
    let (caller, operator) = (ProjectAccess::of(claim, claims), Operator::of(claim, scope, claims));
    let principal = Principal { caller, operator, identity: identity(claims) };
    let signer = authorizer.and_then(|authorizer| authorizer.iam.as_ref()?.user_arn.as_deref());
    match (token, signer) {
        (None, Some(arn)) => principal.identified(arn),
        _ => principal,
    }
}
