//! The authorized request of an operator, and the parameters of a query. A handler reaches failures and instances only
//! through the authorized request, so it cannot skip the authorization.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use saga::Failures;
use serde::de::DeserializeOwned;

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

/// The parameters in the query of a request. A query that cannot be read is refused with 400.
pub struct Parameters<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await;
        query
            .map(|Query(parameters)| Self(parameters))
            .map_err(|rejection| Problem::bad(&rejection.body_text()))
    }
}
