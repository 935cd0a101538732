//! The open connections, and the choice of those to close when the limit is reached.
//!
//! A limit alone would let one client with enough connections lock out all others. A new connection therefore replaces
//! a connection that keeps the server waiting. The connection that has been without a complete request for the longest
//! time is replaced first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The time that a new connection waits for another one to close.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);
/// The divisor of the limit that gives the number of slots to keep free for new connections.
const RESERVE: usize = 8;
/// The minimum pause after which a connection in the middle of a body or a response may be closed.
const PAUSE: Duration = Duration::from_secs(1);

/// The event that a connection is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A complete request head.
    Head,
    /// The next part of a request's body.
    Body,
    /// The server's response.
    Work,
    /// The client reading its response.
    Answer,
}

/// The state of a connection that is shared with the others.
pub(super) struct ConnectionState {
    waiting: Mutex<WaitState>,
    leave: Notify,
}

#[derive(Clone, Copy)]
struct WaitState {
    phase: Phase,
    since: Instant,
    is_to_leave: bool,
}

impl ConnectionState {
    fn new() -> Self {
        let waiting = WaitState { phase: Phase::Head, since: Instant::now(), is_to_leave: false };
        Self { waiting: Mutex::new(waiting), leave: Notify::new() }
    }

    pub(super) fn phase(&self) -> Phase {
        locked(&self.waiting).phase
    }

    /// Enters a phase. The waiting time restarts unless the phase is the same.
    pub(super) fn enter(&self, phase: Phase) {
        let mut waiting = locked(&self.waiting);
        if waiting.phase != phase {
            *waiting = WaitState { phase, since: Instant::now(), ..*waiting };
        }
    }

    /// Restarts the waiting time after progress.
    pub(super) fn progressed(&self) {
        locked(&self.waiting).since = Instant::now();
    }

    /// Waits until the connection has to close.
    pub(super) async fn close_requested(&self) {
        self.leave.notified().await;
    }

    fn ask_to_leave(&self) {
        locked(&self.waiting).is_to_leave = true;
        self.leave.notify_one();
    }
}

/// All connections.
pub(super) struct Connections {
    states: Mutex<(u64, BTreeMap<u64, Arc<ConnectionState>>)>,
    max: usize,
    permits: Arc<Semaphore>,
    /// The number of connections that were asked to close and are still open.
    leaving: AtomicUsize,
}

/// A slot for one connection, which is released when this value is dropped.
pub(super) struct ConnectionSlot {
    pub(super) state: Arc<ConnectionState>,
    number: u64,
    connections: Arc<Connections>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        locked(&self.connections.states).1.remove(&self.number);
        if locked(&self.state.waiting).is_to_leave {
            self.connections.leaving.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            states: Mutex::new((0, BTreeMap::new())),
            max,
            permits,
            leaving: AtomicUsize::new(0),
        })
    }

    /// Returns a slot for a new connection, or `None` if all connections are waiting for the server.
    pub(super) async fn enter(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let reserve = self.max / RESERVE;
        // Make space early and for several connections, so that a burst does not wait for each of them.
        if self.permits.available_permits() + self.leaving.load(Ordering::Relaxed) < reserve / 2 {
            self.ask_to_leave(reserve, Instant::now());
        }
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                if self.leaving.load(Ordering::Relaxed) == 0 && !self.ask_to_leave(1, Instant::now()) {
                    return None;
                }
                let permit = Arc::clone(&self.permits).acquire_owned();
                tokio::time::timeout(LEAVE_WITHIN, permit).await.ok()?.ok()?
            }
        };
        let state = Arc::new(ConnectionState::new());
        let mut states = locked(&self.states);
        states.0 += 1;
        let number = states.0;
        states.1.insert(number, Arc::clone(&state));
        drop(states);
        Some(ConnectionSlot { state, number, connections: Arc::clone(self), _permit: permit })
    }

    /// Asks up to `max` connections to leave, beginning with those that have kept the server waiting for the longest
    /// time. Returns `true` if such a connection exists.
    pub(super) fn ask_to_leave(&self, max: usize, now: Instant) -> bool {
        // Held until the end, so that a connection that leaves concurrently is counted on both sides or on neither.
        let states = locked(&self.states);
        let claim = |state: &Arc<ConnectionState>| {
            Some((locked(&state.waiting).claim_to_leave(now)?, Arc::clone(state)))
        };
        let mut claims: Vec<_> = states.1.values().filter_map(claim).collect();
        claims.sort_by_key(|(claim, _)| std::cmp::Reverse(*claim));
        claims.truncate(max);
        self.leaving.fetch_add(claims.len(), Ordering::Relaxed);
        for (_, state) in &claims {
            state.ask_to_leave();
        }
        !claims.is_empty()
    }
}

impl WaitState {
    /// Returns the priority for leaving, the greatest first; `None` for a connection that stays.
    fn claim_to_leave(self, now: Instant) -> Option<(bool, Duration)> {
        let waited = now.duration_since(self.since);
        match self.phase {
            _ if self.is_to_leave => None,
            Phase::Head => Some((true, waited)),
            Phase::Body | Phase::Answer => (waited >= PAUSE).then_some((false, waited)),
            Phase::Work => None,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn longest_wait_for_request_leaves_first() {
        let connections = Connections::new(5);
        let (begun, mut slots) = (Instant::now(), Vec::new());
        for (phase, seconds) in
            [(Phase::Work, 0), (Phase::Body, 1), (Phase::Head, 5), (Phase::Head, 4), (Phase::Answer, 60)]
        {
            let slot = connections.enter().await.unwrap();
            let since = begun + Duration::from_secs(seconds);
            *locked(&slot.state.waiting) = WaitState { phase, since, is_to_leave: false };
            slots.push(slot);
        }
        let now = begun + Duration::from_secs(60);
        // Connections without a request are first, even if others wait longer. Connections in the middle of a request
        // follow. Connections that have just started to read their response, or wait for a response, are kept.
        for gone in [3, 2, 1] {
            assert!(connections.ask_to_leave(1, now));
            assert!(locked(&slots[gone].state.waiting).is_to_leave, "{gone}");
        }
        assert!(!connections.ask_to_leave(5, now));
        let leaving = slots.iter().filter(|slot| locked(&slot.state.waiting).is_to_leave).count();
        assert_eq!(leaving, 3);
    }

    #[tokio::test]
    async fn full_server_admits_client_after_another_leaves() {
        let connections = Connections::new(1);
        let slot = connections.enter().await.unwrap();
        let (second, ()) = tokio::join!(connections.enter(), async {
            slot.state.close_requested().await;
            drop(slot);
        });
        let second = second.unwrap();
        second.state.enter(Phase::Work);
        assert!(connections.enter().await.is_none(), "no connection keeps the server waiting");
    }
}
