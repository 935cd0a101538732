//! The state that handlers share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use axum::response::Response;
use saga::Failures;
use service::SearchService;

use super::export_slots::Exports;
use super::known_damage::KnownDamage;
use super::problem::Problem;
use super::run_trials::RunTrials;

pub(super) type HttpResult = Result<Response, Problem>;

/// How the host of the API sends responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyMode {
    /// Responses are streamed and may be of any size.
    Streaming,
    /// Responses are buffered and limited to 6 MB: a Lambda function behind an HTTP API
    /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
    Buffered,
}

/// The state that handlers share.
pub(super) struct Api {
    pub(super) service: SearchService,
    pub(super) failures: Failures,
    pub(super) body_mode: BodyMode,
    /// The number of open event streams.
    pub(super) streams: AtomicUsize,
    /// The exports in progress.
    pub(super) exports: Exports,
    /// The damaged studies that have ended exports.
    pub(super) damage: KnownDamage,
    /// Runs fault trials, if the host supports them.
    pub(super) trials: Option<Arc<dyn RunTrials>>,
}
