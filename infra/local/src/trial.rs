//! What can be made to go wrong on purpose, to see that it does no harm.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use embedded::{Call, Intercept, Phase};
use messages::{Outgoing, SendError, SendMessages};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;

/// Faults to try out. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trial {
    /// How often each notification and each message is delivered; 0 and 1 mean once.
    pub copies: u32,
    /// Deliver in an order drawn from this seed.
    pub shuffle: Option<u64>,
    /// Tear the workers down at steps drawn from this seed.
    pub crash: Option<u64>,
}

/// The most times that the workers are torn down in one run: fewer than a message may be received before it
/// counts as poison.
const MAX_CRASHES: u32 = 8;

/// The most steps between two crashes. An import of one small file takes some sixty steps.
const MAX_STEPS: u32 = 50;

/// Sends several copies of everything.
pub struct Copying {
    /// Sends one.
    pub inner: Arc<dyn SendMessages>,
    /// How many; 0 and 1 mean one.
    pub copies: u32,
}

#[async_trait]
impl SendMessages for Copying {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        for _ in 1..self.copies {
            // The last copy's answer counts: then at least one copy is certain to be there.
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

    /// Counts a step; whether it is the one to crash at.
    fn is_fatal(&self) -> bool {
        // A poisoned lock only means that somebody panicked between two numbers.
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
            // Whoever dies here never gets to its next line.
            std::future::pending::<()>().await;
        }
    }
}
