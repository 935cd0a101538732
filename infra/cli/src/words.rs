//! English for numbers, times and sentences.

use jiff::Timestamp;

/// A number of things, such as `1 record` and `2 records`.
pub(crate) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// A number of records.
pub(crate) fn records(count: u64) -> String {
    counted(count, "record", "records")
}

/// A sentence with one full stop, also where its last word has one already.
pub(crate) fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// How long ago something was, as short as a column: by date once that says more.
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
    fn one_is_not_several() {
        assert_eq!([0, 1, 2].map(records), ["0 records", "1 record", "2 records"]);
    }

    #[test]
    fn a_sentence_ends_once() {
        assert_eq!(["Smith, J.", "Smith", "Why?"].map(sentence), ["Smith, J.", "Smith.", "Why?"]);
    }

    #[test]
    fn what_is_long_ago_has_a_date() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let told = |seconds: i64| ago(at(1_000_000_000), at(1_000_000_000 + seconds));
        let days = 86_400_i64;
        assert_eq!(
            [-5, 59, 60, 3_599, 3_600, days - 1, days].map(told),
            ["just now", "just now", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "2001-09-09"]
        );
    }
}
