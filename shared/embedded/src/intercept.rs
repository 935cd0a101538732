//! A look at every call of a port, before and after it.

use async_trait::async_trait;

/// Where in a call a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing has been done yet.
    Before,
    /// It is done and durable, but the caller does not know yet.
    After,
}

/// Is told of every call of a port. One that never returns stops the caller there for good: a crash.
///
/// Calls are named `{port group}.{what}`: `saga.load`, `saga.persist`, `saga.settle`; `outbox.due`,
/// `outbox.claim`, `outbox.settle`; `jobs.write`, `jobs.read`, `jobs.unfinished`, `jobs.progress`, `jobs.report`;
/// `studies.store`, `studies.discard`, `studies.read`, `studies.quarantined`; `session.commit`, `session.find`,
/// `session.bury`; `ledger.claim`, `ledger.release`, `ledger.grant`; `processed.look`, `processed.remember`;
/// `queue.send`, `queue.receive`, `queue.settle`; `objects.presign`, `objects.upload`, `objects.head`,
/// `objects.open`.
#[async_trait]
pub trait Intercept: Send + Sync {
    /// Is called, and waited for, before and after each call.
    async fn step(&self, call: &'static str, phase: Phase);
}
