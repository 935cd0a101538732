//! The authorized request of an operator. A handler reaches failures and instances only through it, so it cannot skip
//! the authorization.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use saga::Failures;

use super::problem::Problem;
use crate::Operator;

/// The state of a router with routes for operators.
pub trait OperatorState: Send + Sync + 'static {
    /// Returns the collection and retry of failures.
    fn failures(&self) -> &Failures;

    /// Returns the operator who sends a request; `None` for other callers.
    fn operator(parts: &Parts) -> Option<Operator>;
}

/// A request of an operator; other callers are refused with 403.
pub struct OperatorRequest {
    /// The operator.
    pub operator: Operator,
    /// The failures of the system.
    pub failures: Failures,
}

impl<S: OperatorState> FromRequestParts<Arc<S>> for OperatorRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<S>) -> Result<Self, Problem> {
        let operator = S::operator(parts).ok_or_else(Problem::not_operator)?;
        Ok(Self { operator, failures: state.failures().clone() })
    }
}
