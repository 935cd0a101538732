//! Formatting of numbers, times and sentences.

use jiff::Timestamp;
pub(crate) use operate::health::counted;

/// Formats a number of records.
pub(crate) fn records(count: u64) -> String {
    counted(count, "record", "records")
}

/// Ends a sentence with one full stop, even if its last word already ends with one.
pub(crate) fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Formats the time since an event for a narrow column; after a day, as a date.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match now.duration_since(then).as_secs() {
        ..MINUTE => "just now".to_owned(),
        seconds @ MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h ago", seconds / HOUR),
        _ => then.strftime("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_one_is_singular() {
        assert_eq!([0, 1, 2].map(records), ["0 records", "1 record", "2 records"]);
    }

    #[test]
    fn sentence_ends_with_one_full_stop() {
        assert_eq!(["Smith, J.", "Smith", "Why?"].map(sentence), ["Smith, J.", "Smith.", "Why?"]);
    }

    #[test]
    fn time_after_a_day_is_a_date() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let shown = |seconds: i64| ago(at(1_000_000_000), at(1_000_000_000 + seconds));
        let days = 86_400_i64;
        assert_eq!(
            [-5, 59, 60, 3_599, 3_600, days - 1, days].map(shown),
            ["just now", "just now", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "2001-09-09"]
        );
    }
}
