//! Faults that can be injected to show that the result stays the same.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use embedded::{Call, Intercept, Phase};
use messages::{Outgoing, SendError, SendMessages};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;

/// Faults to inject. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultInjection {
    /// The number of deliveries of each notification and each message; 0 and 1 mean one.
    pub copies: u32,
    /// The seed of a random order of deliveries.
    pub shuffle: Option<u64>,
    /// The seed of random steps at which the workers crash.
    pub crash: Option<u64>,
}

/// The maximum number of crashes in one run, which is below the receive limit of messages.
const MAX_CRASHES: u32 = 8;

/// The maximum number of steps between two crashes. An import of one small file takes about sixty steps.
const MAX_STEPS: u32 = 50;

/// A sender that sends several copies of each message.
pub struct DuplicatingSender {
    /// The sender of each copy.
    pub inner: Arc<dyn SendMessages>,
    /// The number of copies; both 0 and 1 mean a single copy.
    pub copies: u32,
}

#[async_trait]
impl SendMessages for DuplicatingSender {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        for _ in 1..self.copies {
            // Only the last result counts. If it is a success, at least one copy was sent.
            self.inner.send(messages).await;
        }
        self.inner.send(messages).await
    }
}

/// Decides when the workers crash: before or after a call to a store, a queue or a file.
pub(crate) struct Crashes {
    plan: Mutex<Plan>,
    crashed: Notify,
}

struct Plan {
    random: StdRng,
    left: u32,
    steps: u32,
}

impl Plan {
    fn next(&mut self) {
        self.steps = self.random.random_range(1..=MAX_STEPS);
    }
}

impl Crashes {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let left = random.random_range(1..=MAX_CRASHES);
        let mut plan = Plan { random, left, steps: 0 };
        plan.next();
        Self { plan: Mutex::new(plan), crashed: Notify::new() }
    }

    /// Waits for the next crash.
    pub(crate) async fn crashed(&self) {
        self.crashed.notified().await;
    }

    /// Counts a step. Returns `true` if the workers crash at this step.
    fn is_fatal(&self) -> bool {
        // A poisoned lock does not matter: the numbers are valid at any time.
        let mut plan = self.plan.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if plan.left == 0 {
            return false;
        }
        plan.steps -= 1;
        if plan.steps == 0 {
            plan.left -= 1;
            plan.next();
            return true;
        }
        false
    }
}

#[async_trait]
impl Intercept for Crashes {
    async fn step(&self, _: Call, _: Phase) {
        if self.is_fatal() {
            self.crashed.notify_one();
            // The caller never continues, as after a crash.
            std::future::pending::<()>().await;
        }
    }
}
