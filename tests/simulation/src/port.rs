//! The ports of one worker: every port of every function, over the shared world.
//!
//! Each call has two points: before it is performed, and after it was performed but before the caller receives the
//! result.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{DecisionRecord, DecisionSink, Host, StoreError};
use uuid::{Builder, Uuid};

use crate::coverage::{Call, Phase};
use crate::fault::{LATENESS_MS, SECOND_COPY_MS};
use crate::gate::Gate;
use crate::point::{Grant, Kind};
use crate::time::timestamp;
use crate::universe::Universe;
use crate::world::{Occasion, World};

/// All ports of one worker.
#[derive(Clone)]
pub(crate) struct Port {
    pub(crate) universe: Universe,
    pub(crate) process: usize,
}

impl Port {
    /// Returns a future that stops this worker until the scheduler grants it, at this time or later.
    pub(crate) fn stop_at(&self, kind: Kind, not_before: u64) -> Gate<'_> {
        Gate::new(&self.universe, self.process, kind, not_before)
    }

    pub(crate) async fn gate(&self, call: Call, phase: Phase) -> Grant {
        self.stop_at(Kind::Call(call, phase), 0).await
    }

    /// Makes a call.
    pub(crate) async fn call<T: Send>(
        &self,
        call: Call,
        perform: impl FnOnce(&mut World) -> T + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        self.call_or(call, perform, |_| ()).await
    }

    /// Makes a call that may be answered with earlier data. `perform` receives `true` in this case.
    pub(crate) async fn read<T: Send>(
        &self,
        call: Call,
        perform: impl FnOnce(&mut World, bool) -> T + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        let grant = self.gate(call, Phase::Before).await;
        let is_stale = grant == Grant::Stale;
        self.go_on(call, grant, move |world| perform(world, is_stale), |_| ()).await
    }

    /// Makes a call that `in_part` may perform partially if it reports an error.
    pub(crate) async fn call_or<T: Send>(
        &self,
        call: Call,
        perform: impl FnOnce(&mut World) -> T + Clone + Send + 'static,
        in_part: impl FnOnce(&mut World) + Send,
    ) -> Result<T, StoreError> {
        let grant = self.gate(call, Phase::Before).await;
        self.go_on(call, grant, perform, in_part).await
    }

    /// Makes a call whose first point was granted.
    pub(crate) async fn go_on<T: Send>(
        &self,
        call: Call,
        grant: Grant,
        perform: impl FnOnce(&mut World) -> T + Clone + Send + 'static,
        in_part: impl FnOnce(&mut World) + Send,
    ) -> Result<T, StoreError> {
        match grant {
            Grant::Go | Grant::Twice | Grant::Stale => {}
            Grant::Fail => {
                self.perform(in_part);
                return Err(failed(call));
            }
            Grant::Late => {
                self.perform(|world| world.postpone(call, perform));
                return Err(failed(call));
            }
        }
        let value = match grant {
            Grant::Twice => self.perform_twice(call, perform).await,
            _ => self.perform(perform),
        };
        match self.gate(call, Phase::After).await {
            Grant::Go | Grant::Twice | Grant::Stale => Ok(value),
            Grant::Fail | Grant::Late => Err(failed(call)),
        }
    }

    /// Performs a request that the client has sent twice, because the first copy was not answered in time. The caller
    /// receives one of the answers. The first copy may be delayed, so it may arrive last.
    async fn perform_twice<T: Send>(
        &self,
        call: Call,
        perform: impl FnOnce(&mut World) -> T + Clone + Send + 'static,
    ) -> T {
        let again = perform.clone();
        // MongoDB recognizes a bulk write that its driver repeats, and returns the same answer.
        let is_known = call == Call::SAGA_PERSIST;
        let is_answered_first = is_known || self.universe.with(|world| world.more.one_in(2));
        let first = self.perform(|world| {
            let value = perform(world);
            if is_answered_first {
                let at = world.now + world.more.pick(&SECOND_COPY_MS);
                let again = again.clone();
                let act = move |world: &mut World| {
                    world.note(|| format!("{} arrives again", call.name()));
                    again(world);
                };
                world.at(at, Occasion::Arrive(call, Box::new(act)));
            }
            value
        });
        if is_answered_first {
            return first;
        }
        let at = self.universe.with(|world| world.now + world.more.pick(&SECOND_COPY_MS[..2]));
        self.stop_at(Kind::Call(Call::HOST_SLEEP, Phase::Before), at).await;
        self.perform(|world| {
            world.note(|| format!("{} is sent again", call.name()));
            again(world)
        })
    }

    /// Performs an action on behalf of this worker.
    pub(crate) fn perform<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        self.universe.with(|world| {
            world.acting = Some(self.process);
            act(world)
        })
    }
}

impl World {
    /// Schedules a second arrival of the current request: its client repeated it because the answer was late, and the
    /// first copy was only delayed.
    pub(crate) fn may_repeat(&mut self, call: Call, perform: impl FnOnce(&mut Self) + Send + 'static) {
        if self.spare_repeats == 0 || self.only_repeats || !self.rng.one_in(8) {
            return;
        }
        self.spare_repeats -= 1;
        let at = self.now + self.rng.pick(&LATENESS_MS);
        let act = move |world: &mut Self| {
            world.note(|| format!("{} arrives a second time", call.name()));
            perform(world);
        };
        self.at(at, Occasion::Arrive(call, Box::new(act)));
    }

    /// Performs a call after its caller stopped waiting.
    fn postpone<T>(&mut self, call: Call, perform: impl FnOnce(&mut Self) -> T + Send + 'static) {
        let at = self.now + self.rng.pick(&LATENESS_MS);
        let act = move |world: &mut Self| {
            world.note(|| format!("{} arrives late", call.name()));
            perform(world);
        };
        self.at(at, Occasion::Arrive(call, Box::new(act)));
    }
}

pub(crate) fn failed(call: Call) -> StoreError {
    StoreError::unavailable(call.name(), "the simulated store did not answer")
}

#[async_trait]
impl Host for Port {
    fn now(&self) -> Timestamp {
        self.universe.with(|world| world.time_of(self.process))
    }

    fn fresh_id(&self) -> Uuid {
        self.universe.with(World::fresh_id)
    }

    /// Returns an id that is generated like every other id, so that a run is reproducible.
    fn random_id(&self) -> Uuid {
        self.fresh_id()
    }

    fn unit_random(&self) -> f64 {
        self.universe.with(|world| world.rng.unit())
    }

    async fn sleep(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let until = self.universe.with(|world| world.now.saturating_add(millis));
        self.stop_at(Kind::Call(Call::HOST_SLEEP, Phase::Before), until).await;
    }
}

impl World {
    /// Ascending in time, also for ids of the same millisecond.
    pub(crate) fn fresh_id(&mut self) -> Uuid {
        self.ids = self.ids.wrapping_add(1);
        let ([a, b, c, d], [x, y, z, ..]) = (self.ids.to_be_bytes(), self.rng.draw().to_be_bytes());
        let millis = u64::try_from(timestamp(self.now).as_millisecond()).unwrap_or(0);
        // The first three bytes lose bits to the version and the variant.
        Builder::from_unix_timestamp_millis(millis, &[0, 0, 0, a, b, c, d, x, y, z]).into_uuid()
    }
}

impl DecisionSink for Port {
    fn observe(&self, observation: DecisionRecord) {
        self.perform(|world| world.observed(&observation));
    }
}
