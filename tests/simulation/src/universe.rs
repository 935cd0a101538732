//! The shared world of a schedule.

use std::sync::{Arc, Mutex, PoisonError};

use crate::world::World;

/// The world, which all workers of a schedule share.
#[derive(Clone)]
pub(crate) struct Universe(Arc<Mutex<World>>);

impl Universe {
    pub(crate) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    /// Accesses the world. Accesses may neither be nested nor span an await.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        // A panic while the world was borrowed has been recorded as a violation, which ends the schedule.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
