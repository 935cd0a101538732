//! The scheduled work of a function.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use messages::StoreError;
use outbox::DispatchOutbox;
use saga::{Engine, Failures, Function, MissingSetting, SweepHeartbeat, System, Upkeep};

/// The time that one step of the work in the background may take.
const UPKEEP_STEP: SignedDuration = SignedDuration::from_secs(30);

/// The work that a schedule starts, usually every minute:
/// - the function that consumes the control queue sweeps the outboxes, which also sends due timer events;
/// - a function that drains dead-letter queues collects failures and continues their retries;
/// - last, the application's work in the background, if it is added.
pub struct ScheduledWork {
    sweep: Option<(DispatchOutbox, SweepHeartbeat)>,
    failures: Option<Failures>,
    upkeep: Option<Arc<dyn Upkeep>>,
}

/// The reason why scheduled work failed.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The function has no scheduled work, so the schedule is wrong.
    #[error(
        "the function has no scheduled work: it neither consumes the control queue nor drains a dead-letter queue"
    )]
    NothingScheduled,
    /// A store is unavailable. The next event continues the work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ScheduledWork {
    /// Returns the scheduled work of a function.
    pub fn of<P>(
        engine: &Engine,
        system: &System<P>,
        function: &Function<P>,
    ) -> Result<Self, MissingSetting> {
        let sweeps = function.dispatches_outbox();
        let sweep = sweeps.then(|| Ok((engine.dispatch_outbox(function.name)?, engine.sweeps()?)));
        let failures = (!function.drains.is_empty()).then(|| engine.failures(function.name, system));
        Ok(Self { sweep: sweep.transpose()?, failures: failures.transpose()?, upkeep: None })
    }

    /// Adds the work in the background.
    #[must_use]
    pub fn with_upkeep(self, upkeep: Option<Arc<dyn Upkeep>>) -> Self {
        Self { upkeep, ..self }
    }

    /// Does the work that is due, and begins nothing after `deadline`. Work that fails does not stop the rest.
    ///
    /// # Errors
    /// Returns the first error if there is no such work, or a store is unavailable.
    pub async fn run(&self, engine: &Engine, deadline: Timestamp) -> Result<(), ScheduleError> {
        if self.sweep.is_none() && self.failures.is_none() {
            return Err(ScheduleError::NothingScheduled);
        }
        let swept = self.sweep(deadline).await;
        let retried = match &self.failures {
            Some(failures) => failures.run(Some(deadline)).await,
            None => Ok(()),
        };
        // An alarm must not report a missing sweep if the work in the background exceeds the invocation.
        engine.observer.flush().await;
        let results = [swept, retried, self.keep_up(engine, deadline).await];
        engine.observer.flush().await;
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            tracing::error!(error = error.chain(), "a part of the scheduled work failed");
        }
        results.into_iter().collect::<Result<(), _>>().map_err(ScheduleError::Store)
    }

    async fn sweep(&self, deadline: Timestamp) -> Result<(), StoreError> {
        match &self.sweep {
            Some((outbox, heartbeat)) if outbox.sweep(Some(deadline)).await?.to_the_end => {
                heartbeat.note().await
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn keep_up(&self, engine: &Engine, deadline: Timestamp) -> Result<(), StoreError> {
        let until = deadline.saturating_sub(UPKEEP_STEP).unwrap_or(deadline);
        if let Some(upkeep) = &self.upkeep {
            while engine.host.now() < until && upkeep.step().await? {}
        }
        Ok(())
    }
}
