//! Who is connected, and who has to go when somebody else wants in.
//!
//! A limit alone would let whoever holds enough connections lock all others out. So a new connection is always let in
//! while another one makes the server wait: first goes the one that has been without a whole request longest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long a new connection waits for one that was asked to leave.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);
/// One place in so many is kept free for whoever comes next.
const RESERVE: usize = 8;
/// A client in the middle of a body or an answer is not asked to leave for a shorter pause than this.
const PAUSE: Duration = Duration::from_secs(1);

/// What a connection is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A whole request head.
    Head,
    /// More of a request's body.
    Body,
    /// The server.
    Work,
    /// The client to read its answer.
    Answer,
}

/// One connection, as all others see it.
pub(super) struct Slot {
    waiting: Mutex<Waiting>,
    leave: Notify,
}

#[derive(Clone, Copy)]
struct Waiting {
    phase: Phase,
    since: Instant,
    is_to_leave: bool,
}

impl Slot {
    fn new() -> Self {
        let waiting = Waiting { phase: Phase::Head, since: Instant::now(), is_to_leave: false };
        Self { waiting: Mutex::new(waiting), leave: Notify::new() }
    }

    pub(super) fn phase(&self) -> Phase {
        locked(&self.waiting).phase
    }

    /// Begins to wait for something else; for the same, it goes on waiting.
    pub(super) fn enter(&self, phase: Phase) {
        let mut waiting = locked(&self.waiting);
        if waiting.phase != phase {
            *waiting = Waiting { phase, since: Instant::now(), ..*waiting };
        }
    }

    /// Something moved: the waiting begins anew.
    pub(super) fn moves(&self) {
        locked(&self.waiting).since = Instant::now();
    }

    /// Resolves when the connection has to go.
    pub(super) async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }

    fn ask_to_leave(&self) {
        locked(&self.waiting).is_to_leave = true;
        self.leave.notify_one();
    }
}

/// All connections.
pub(super) struct Connections {
    slots: Mutex<(u64, BTreeMap<u64, Arc<Slot>>)>,
    most: usize,
    room: Arc<Semaphore>,
    /// How many were asked to leave and are still there.
    leaving: AtomicUsize,
}

/// A connection's place among the others, given back when it is dropped.
pub(super) struct Seat {
    pub(super) slot: Arc<Slot>,
    number: u64,
    connections: Arc<Connections>,
    _room: OwnedSemaphorePermit,
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.connections.slots).1.remove(&self.number);
        if locked(&self.slot.waiting).is_to_leave {
            self.connections.leaving.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Connections {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let room = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { slots: Mutex::new((0, BTreeMap::new())), most, room, leaving: AtomicUsize::new(0) })
    }

    /// A place for a new connection; none when everybody is being answered.
    pub(super) async fn enter(self: &Arc<Self>) -> Option<Seat> {
        let reserve = self.most / RESERVE;
        // In good time, and several at once: a burst of connections must not wait for each one that leaves.
        if self.room.available_permits() + self.leaving.load(Ordering::Relaxed) < reserve / 2 {
            self.ask_to_leave(reserve, Instant::now());
        }
        let room = match Arc::clone(&self.room).try_acquire_owned() {
            Ok(room) => room,
            Err(_) => {
                if self.leaving.load(Ordering::Relaxed) == 0 && !self.ask_to_leave(1, Instant::now()) {
                    return None;
                }
                let room = Arc::clone(&self.room).acquire_owned();
                tokio::time::timeout(LEAVE_WITHIN, room).await.ok()?.ok()?
            }
        };
        let slot = Arc::new(Slot::new());
        let mut slots = locked(&self.slots);
        slots.0 += 1;
        let number = slots.0;
        slots.1.insert(number, Arc::clone(&slot));
        drop(slots);
        Some(Seat { slot, number, connections: Arc::clone(self), _room: room })
    }

    /// Asks those connections to leave, so many at most, that make the server wait longest. Whether there is any.
    pub(super) fn ask_to_leave(&self, most: usize, now: Instant) -> bool {
        // Held to the end: whoever leaves meanwhile is counted by both sides, or by neither.
        let slots = locked(&self.slots);
        let claim = |slot: &Arc<Slot>| Some((locked(&slot.waiting).claim_to_leave(now)?, Arc::clone(slot)));
        let mut claims: Vec<_> = slots.1.values().filter_map(claim).collect();
        claims.sort_by_key(|(claim, _)| std::cmp::Reverse(*claim));
        claims.truncate(most);
        self.leaving.fetch_add(claims.len(), Ordering::Relaxed);
        for (_, slot) in &claims {
            slot.ask_to_leave();
        }
        !claims.is_empty()
    }
}

impl Waiting {
    /// The greatest has to leave first, none not at all.
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
    async fn whoever_has_waited_longest_for_a_request_goes_first() {
        let connections = Connections::new(5);
        let (begun, mut seats) = (Instant::now(), Vec::new());
        for (phase, seconds) in
            [(Phase::Work, 0), (Phase::Body, 1), (Phase::Head, 5), (Phase::Head, 4), (Phase::Answer, 60)]
        {
            let seat = connections.enter().await.unwrap();
            let since = begun + Duration::from_secs(seconds);
            *locked(&seat.slot.waiting) = Waiting { phase, since, is_to_leave: false };
            seats.push(seat);
        }
        let now = begun + Duration::from_secs(60);
        // Without a request, although others wait longer; then in the middle of one. Whoever has begun to read its answer,
        // or is being answered, stays.
        for gone in [3, 2, 1] {
            assert!(connections.ask_to_leave(1, now));
            assert!(locked(&seats[gone].slot.waiting).is_to_leave, "{gone}");
        }
        assert!(!connections.ask_to_leave(5, now));
        let leaving = seats.iter().filter(|seat| locked(&seat.slot.waiting).is_to_leave).count();
        assert_eq!(leaving, 3);
    }

    #[tokio::test]
    async fn a_full_server_lets_in_whoever_comes_once_another_has_left() {
        let connections = Connections::new(1);
        let seat = connections.enter().await.unwrap();
        let (second, ()) = tokio::join!(connections.enter(), async {
            seat.slot.asked_to_leave().await;
            drop(seat);
        });
        let second = second.unwrap();
        second.slot.enter(Phase::Work);
        assert!(connections.enter().await.is_none(), "nobody makes it wait");
    }
}
