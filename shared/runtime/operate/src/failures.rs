//! Failures as an operator's command needs them: read completely, and a retry followed until it has ended.

use std::time::Duration;

use messages::StoreError;
use saga::failures::store::KeepFailures;
use saga::failures::{Failure, Failures, Operation, OperationId, Selection};

/// The number of failures that are read at a time.
const PAGE: usize = 200;
/// The interval between checks whether the next step of a retry is due.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The reason why an operation could not be followed to its end. The workers continue the operation.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The operation was removed.
    #[error("operation {0} is gone")]
    Gone(OperationId),
    /// The store is unavailable. A caller can follow the operation again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns up to `max` failures of a selection, the last seen first.
pub async fn selected(
    store: &dyn KeepFailures,
    selection: &Selection,
    max: usize,
) -> Result<Vec<Failure>, StoreError> {
    let mut found = Vec::new();
    for_each(store, selection, max, |failure| found.push(failure)).await?;
    Ok(found)
}

/// Passes up to `max` failures of a selection to a function, the last seen first. Only one page of them is kept, because
/// a failure contains a whole message.
pub async fn for_each(
    store: &dyn KeepFailures,
    selection: &Selection,
    max: usize,
    mut each: impl FnMut(Failure) + Send,
) -> Result<(), StoreError> {
    let (mut left, mut after) = (max, None);
    while left > 0 {
        let limit = PAGE.min(left);
        let page = store.select(selection, after, limit).await?;
        let is_last = page.len() < limit;
        (left, after) = (left.saturating_sub(page.len()), page.last().map(Failure::place));
        page.into_iter().for_each(&mut each);
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Runs the steps of an operation until it has ended, and returns it. Workers may run them concurrently. `progress`
/// receives the operation after each step.
///
/// # Errors
/// Returns an error if the operation was removed, or the store is unavailable.
pub async fn follow(
    failures: &Failures,
    id: OperationId,
    mut progress: impl FnMut(&Operation),
) -> Result<Operation, FollowError> {
    loop {
        failures.run_step(None).await?;
        let operation = failures.store.operation(id).await?.ok_or(FollowError::Gone(id))?;
        progress(&operation);
        if operation.phase.has_ended() {
            return Ok(operation);
        }
        failures.reporter.host.sleep(POLL_INTERVAL).await;
    }
}
