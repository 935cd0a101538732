//! What an API Gateway says of the caller of a request.

use axum::http::Extensions;
use lambda_http::request::RequestContext;

use service::caller::name;
use service::{Operator, Principal, ProjectAccess};

/// Who made a request that `lambda_http` has read: `claim` names the claim of their token that lists their projects;
/// none where callers have no tokens. `scope` is the scope of operators. Those who sign their requests are named by the ARN of
/// who has signed.
pub fn caller(claim: Option<&str>, scope: &str, request: &Extensions) -> Principal {
    let authorizer = request.get::<RequestContext>().and_then(RequestContext::authorizer);
    let token = authorizer.and_then(|authorizer| authorizer.jwt.as_ref());
    let claims = token.map(|token| &token.claims);
    let (caller, operator) = (ProjectAccess::of(claim, claims), Operator::of(claim, scope, claims));
    let whoever = Principal { caller, operator, name: name(claims) };
    let signer = authorizer.and_then(|authorizer| authorizer.iam.as_ref()?.user_arn.as_deref());
    match (token, signer) {
        (None, Some(arn)) => whoever.named(arn),
        _ => whoever,
    }
}
