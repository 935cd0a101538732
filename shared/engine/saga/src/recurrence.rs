//! The times of recurring timers.

use jiff::{SignedDuration, Timestamp};

/// Times at a fixed distance, such as every day at 02:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recurrence {
    /// The period in seconds, at least 1.
    period: i64,
    /// The offset in seconds, less than the period.
    offset: i64,
}

impl Recurrence {
    /// Returns the times at multiples of a period, counted from the beginning of 1970 in UTC.
    ///
    /// ```
    /// use jiff::SignedDuration;
    /// use saga::Recurrence;
    ///
    /// const NIGHTLY: Recurrence =
    ///     Recurrence::every(SignedDuration::from_hours(24)).offset_by(SignedDuration::from_hours(2));
    /// ```
    ///
    /// A period of zero does not compile in a constant:
    ///
    /// ```compile_fail
    /// use jiff::SignedDuration;
    /// use saga::Recurrence;
    ///
    /// const NEVER: Recurrence = Recurrence::every(SignedDuration::ZERO);
    /// ```
    ///
    /// # Panics
    /// Panics if the period is shorter than a second. Fractions of a second are ignored.
    pub const fn every(period: SignedDuration) -> Self {
        assert!(period.as_secs() >= 1, "the period of a recurrence is at least one second");
        Self { period: period.as_secs(), offset: 0 }
    }

    /// Moves all times by an offset, such as two hours for every day at 02:00 UTC.
    #[must_use]
    pub const fn offset_by(self, offset: SignedDuration) -> Self {
        Self { offset: offset.as_secs().rem_euclid(self.period), ..self }
    }

    /// Returns the first time that is later than both `now` and `last`, the previous time. Times that have passed, such
    /// as during an outage, are skipped.
    ///
    /// `now` alone is not sufficient: the clock of the worker may be behind the clock of the worker that sent the
    /// event, and the same time would be returned again.
    pub fn next(&self, now: Timestamp, last: Option<Timestamp>) -> Timestamp {
        let after = last.map_or(now, |last| last.max(now)).as_second();
        let passed = after.saturating_sub(self.offset).div_euclid(self.period);
        let next = passed.saturating_add(1).saturating_mul(self.period).saturating_add(self.offset);
        Timestamp::from_second(next).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIGHTLY: Recurrence =
        Recurrence::every(SignedDuration::from_hours(24)).offset_by(SignedDuration::from_hours(2));

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn recurring_times_are_equidistant() {
        for now in ["2026-11-26T02:00:00Z", "2026-11-26T02:00:00.5Z", "2026-11-27T01:59:59.999Z"] {
            assert_eq!(NIGHTLY.next(at(now), None), at("2026-11-27T02:00:00Z"), "{now}");
        }
        assert_eq!(NIGHTLY.next(at("1969-12-31T23:00:00Z"), None), at("1970-01-01T02:00:00Z"));
    }

    #[test]
    fn next_time_is_in_the_future() {
        let last = at("2026-11-27T02:00:00Z");
        for (now, next) in [
            ("2026-11-27T01:59:58Z", "2026-11-28T02:00:00Z"),
            ("2026-11-27T02:00:07Z", "2026-11-28T02:00:00Z"),
            ("2026-12-24T18:00:00Z", "2026-12-25T02:00:00Z"),
        ] {
            assert_eq!(NIGHTLY.next(at(now), Some(last)), at(next), "{now}");
        }
        let never = Recurrence::every(SignedDuration::MAX);
        assert_eq!(never.next(Timestamp::UNIX_EPOCH, None), Timestamp::MAX);
        assert_eq!(NIGHTLY.next(Timestamp::MAX, None), Timestamp::MAX);
    }

    #[test]
    fn offset_of_many_periods_moves_times_within_one() {
        let now = at("2026-11-27T01:59:58Z");
        for offset in [SignedDuration::MIN, SignedDuration::MAX, SignedDuration::from_hours(-22)] {
            let next = Recurrence::every(SignedDuration::from_hours(24)).offset_by(offset).next(now, None);
            assert!(
                next > now && next.duration_since(now) <= SignedDuration::from_hours(24),
                "{offset}: {next}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "at least one second")]
    fn period_below_a_second_is_refused() {
        Recurrence::every(SignedDuration::from_millis(999));
    }
}
