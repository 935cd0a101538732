//! Numbers of records on the command line.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The maximum number of records in a range; one repair corrects as many records.
const MAX_RECORDS: u64 = 10_000;

/// Numbers of records in a file, at least one. The text form is `7,9-12`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordNumbers(pub(crate) BTreeSet<u64>);

impl fmt::Display for RecordNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *number => *last = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let text = |(first, last): &(u64, u64)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        f.write_str(&ranges.iter().map(text).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for RecordNumbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut numbers = BTreeSet::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number =
                |text: &str| text.parse().map_err(|_| format!("{range:?} is not a number or a range"));
            let (first, last): (u64, u64) = (number(first)?, number(last)?);
            if first > last || last - first >= MAX_RECORDS {
                return Err(format!("{range} is not a range of up to {MAX_RECORDS} records"));
            }
            numbers.extend(first..=last);
        }
        Ok(Self(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_numbers_survive_their_text() {
        for text in ["7", "1-3", "7,9-12,14"] {
            assert_eq!(text.parse::<RecordNumbers>().unwrap().to_string(), text);
        }
        let last = u64::MAX.to_string();
        assert_eq!(last.parse::<RecordNumbers>().unwrap().to_string(), last);
        for text in ["", ",", "3-1", "1-99999999", "x", "-1", "1-"] {
            assert!(text.parse::<RecordNumbers>().is_err(), "{text}");
        }
    }
}
