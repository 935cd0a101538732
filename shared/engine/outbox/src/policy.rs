//! The consequence of a failed attempt.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use messages::MessageId;

use crate::entry::{Entry, MAX_ERROR_CHARS};

/// The settings of the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The time after its first failure at which an entry that fails again is exhausted. If this time is zero, the
    /// first failure exhausts the entry.
    pub give_up_after: SignedDuration,
    /// The maximum delay between two attempts.
    pub max_delay: SignedDuration,
    /// The duration of a claim. After it, another worker may take the entry over.
    pub stuck_after: SignedDuration,
    /// The maximum number of records in one batch.
    pub batch: usize,
    /// The maximum number of concurrent calls to queues. One call takes ten messages and about ten milliseconds, so
    /// sequential calls for a hundred thousand timers would take longer than one invocation of the function.
    pub sends: usize,
    /// The time limit of one call to a queue, including its retries, after which its messages count as not sent. It is
    /// at most half of `stuck_after`, so no other worker takes over an entry that is still being sent.
    pub send_timeout: Duration,
    /// The retention of a record without open entries. A record with exhausted entries is kept.
    pub retention: SignedDuration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            give_up_after: SignedDuration::from_hours(24),
            max_delay: SignedDuration::from_mins(5),
            stuck_after: SignedDuration::from_mins(5),
            batch: 250,
            sends: 10,
            send_timeout: Duration::from_secs(15),
            retention: SignedDuration::from_hours(7 * 24),
        }
    }
}

/// The result of one attempt at one entry, or a takeover. The settlement is applied only while the entry has the claim
/// that the attempt held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The entry.
    pub id: MessageId,
    /// The `claimed_until` of the attempt.
    pub claim: Option<Timestamp>,
    /// The changed entry; `None` to remove it, because it was performed.
    pub keep: Option<Entry>,
}

impl Settlement {
    /// Takes an entry over from its worker, by a claim until `until`. It is stored before the entry is performed. The
    /// next attempt follows only after this claim, even if the entry is taken over again.
    ///
    /// Otherwise every redelivery would repeat the effect while settling fails, and two sagas that answer each other
    /// would multiply their messages.
    pub fn takeover(entry: &Entry, until: Timestamp) -> Self {
        let keep = Entry { next_attempt_at: until, claimed_until: Some(until), ..entry.clone() };
        Self { id: entry.id, claim: entry.claimed_until, keep: Some(keep) }
    }

    /// Gives the claim of an entry back that was not performed. The entry stays due.
    pub fn give_back(entry: &Entry) -> Self {
        let keep = Entry { claimed_until: None, ..entry.clone() };
        Self { id: entry.id, claim: entry.claimed_until, keep: Some(keep) }
    }
}

/// The reason why an entry could not be performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error.
    pub error: String,
    /// `true` if a retry cannot succeed.
    pub permanent: bool,
}

impl Policy {
    /// Returns the end of a claim that begins now.
    pub fn claim_until(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.stuck_after).unwrap_or(Timestamp::MAX)
    }

    /// Returns the last time at which a call to a queue may start that ends at this time at the latest.
    pub(crate) fn last_call(&self, end: Timestamp) -> Timestamp {
        end.checked_sub(self.send_timeout).unwrap_or(Timestamp::MIN)
    }

    /// Returns the last time at which performing the entries of a claim may start. The calls have to end before the
    /// deadline, and their settlement before the end of the claim.
    pub(crate) fn last_start(&self, claimed_until: Timestamp, deadline: Option<Timestamp>) -> Timestamp {
        let last = self.last_call(self.last_call(claimed_until));
        deadline.map_or(last, |deadline| self.last_call(deadline).min(last))
    }

    /// Returns the settlement after an attempt. `random` is from 0 to 1.
    pub fn settle(
        &self,
        entry: &Entry,
        result: Result<(), Failure>,
        now: Timestamp,
        random: f64,
    ) -> Settlement {
        let keep = result.err().map(|failure| self.failed(entry, &failure, now, random));
        Settlement { id: entry.id, claim: entry.claimed_until, keep }
    }

    /// The budget is a time and not a number of attempts: an outage may take hours, and does not indicate a faulty
    /// entry.
    fn failed(&self, entry: &Entry, failure: &Failure, now: Timestamp, random: f64) -> Entry {
        let attempts = entry.attempts.saturating_add(1);
        let due_at = if attempts == 1 { now } else { entry.due_at };
        Entry {
            attempts,
            due_at,
            next_attempt_at: now.checked_add(self.delay(attempts, random)).unwrap_or(Timestamp::MAX),
            claimed_until: None,
            poisoned: failure.permanent || now.duration_since(due_at) >= self.give_up_after,
            error: Some(failure.error.chars().take(MAX_ERROR_CHARS).collect()),
            ..entry.clone()
        }
    }

    /// Returns half of the backoff plus a random part of the other half, so that entries that failed together are not
    /// retried together. The backoff is `2^attempts` seconds, up to the maximum.
    fn delay(&self, attempts: u32, random: f64) -> SignedDuration {
        let seconds = 1_i64.checked_shl(attempts).filter(|seconds| *seconds > 0).unwrap_or(i64::MAX);
        let half = SignedDuration::from_secs(seconds).min(self.max_delay).as_secs_f64() / 2.0;
        SignedDuration::try_from_secs_f64(half + random.clamp(0.0, 1.0) * half).unwrap_or(self.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messages::{Body, Json, Message, PartitionKey, Queue};
    use uuid::Uuid;

    fn entry() -> Entry {
        let body = Body { system: "shop".into(), name: "Paid".into(), version: 1, data: Json::default() };
        let (id, partition) =
            (MessageId::from_uuid(Uuid::from_u128(1)), PartitionKey::from_uuid(Uuid::nil()));
        let message = Message::new(id, "test", partition, Timestamp::UNIX_EPOCH, body);
        Entry::message(&message, Queue::named("saga"), Timestamp::UNIX_EPOCH).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn fail_at(policy: &Policy, entry: &Entry, now: Timestamp, random: f64) -> Entry {
        let failure = Failure { error: "é".repeat(3_000), permanent: false };
        policy.settle(entry, Err(failure), now, random).keep.unwrap()
    }

    fn fail(policy: &Policy, entry: &Entry, random: f64) -> Entry {
        fail_at(policy, entry, Timestamp::UNIX_EPOCH, random)
    }

    #[rstest::rstest]
    #[case::at_once_and_never_again(0, &[0], false)]
    #[case::five_times_within_minutes(0, &[0, 60, 120, 180, 240], false)]
    #[case::for_nearly_a_day(0, &[0, 86_399], false)]
    #[case::for_a_day(0, &[0, 86_400], true)]
    #[case::for_a_day_after_nobody_tried_for_two(0, &[172_800, 172_860, 259_200], true)]
    #[case::first_when_it_was_due_for_two_days(0, &[172_800, 172_860], false)]
    #[case::an_overdue_one_that_was_requeued(172_800, &[172_801, 259_200], false)]
    fn entry_is_exhausted_after_failing_for_a_day(
        #[case] requeued_at: i64,
        #[case] failures: &[i64],
        #[case] exhausted: bool,
    ) {
        let policy = Policy::default();
        let mut entry = match requeued_at {
            0 => entry(),
            requeued_at => Entry { poisoned: true, attempts: 300, ..entry() }.requeued(at(requeued_at)),
        };
        for seconds in failures {
            assert!(!entry.poisoned);
            entry = fail_at(&policy, &entry, at(*seconds), 0.0);
        }
        assert_eq!((entry.poisoned, entry.ready_at().is_none()), (exhausted, exhausted));
    }

    #[test]
    fn takeover_keeps_retry_time() {
        let late = at(172_800);
        let taken = Settlement::takeover(&entry(), late).keep.unwrap();
        assert!(!taken.is_due(at(172_799)) && taken.is_due(late) && taken.is_ready(late));
        assert!(!fail_at(&Policy::default(), &taken, late, 0.0).poisoned, "it fails for the first time");
    }

    #[test]
    fn zero_retry_time_poisons_on_first_failure() {
        assert!(
            fail(&Policy { give_up_after: SignedDuration::ZERO, ..Policy::default() }, &entry(), 0.0)
                .poisoned
        );
    }

    #[test]
    fn delay_is_jittered_backoff_with_cap() {
        let policy = Policy::default();
        let delay = |entry: &Entry| entry.next_attempt_at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64();
        assert_eq!(delay(&fail(&policy, &entry(), 0.0)), 1.0);
        assert_eq!(delay(&fail(&policy, &entry(), 1.0)), 2.0);
        let tired = Entry { attempts: 70, ..entry() };
        assert_eq!(delay(&fail(&policy, &tired, 1.0)), 300.0);
    }

    #[test]
    fn error_text_is_cut_at_character_boundary() {
        assert_eq!(fail(&Policy::default(), &entry(), 0.0).error.unwrap().chars().count(), MAX_ERROR_CHARS);
    }

    #[test]
    fn permanent_failure_poisons_immediately() {
        let failure = Failure { error: "no destination".into(), permanent: true };
        let settled = Policy::default().settle(&entry(), Err(failure), Timestamp::UNIX_EPOCH, 0.0);
        assert!(settled.keep.unwrap().poisoned);
    }

    #[test]
    fn claimed_entry_is_hidden_until_claim_expires() {
        let until = Policy::default().claim_until(Timestamp::UNIX_EPOCH);
        let claimed = Entry { claimed_until: Some(until), ..entry() };
        assert!(!claimed.is_ready(Timestamp::UNIX_EPOCH) && claimed.is_due(Timestamp::UNIX_EPOCH));
        assert!(claimed.is_ready(until));
    }
}
