//! Work of an application that no message starts.

use async_trait::async_trait;
use messages::StoreError;

/// Work in the background, such as building an index. It is done in steps, which a program repeats on a schedule while
/// it has time. Several programs may work on it at the same time.
#[async_trait]
pub trait Upkeep: Send + Sync {
    /// Does the next step, which takes at most a few seconds. Returns `false` if nothing is left.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the program then repeats the step on its schedule.
    async fn step(&self) -> Result<bool, StoreError>;
}
