//! A part of all that studies can have in common, for marking duplicates in little memory.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// How keys are made. It changes when the crate that makes them makes others: what is in a share is then something else.
static KEYS: LazyLock<String> = LazyLock::new(|| {
    let version = |(major, minor, update): (u8, u8, u8)| format!("{major}.{minor}.{update}");
    let (letters, forms) = (version(char::UNICODE_VERSION), version(::duplicates::UNICODE_VERSION));
    format!("fields {}, Unicode {letters} and {forms}", ::duplicates::VERSION)
});

/// A share of all that studies can have in common: what has a key with this remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Share {
    divisor: u64,
    remainder: u64,
}

impl Share {
    /// All of it.
    pub const ALL: Self = Self { divisor: 1, remainder: 0 };

    pub(super) fn has(self, key: u64) -> bool {
        key % self.divisor == self.remainder
    }

    /// Two that make up this one.
    pub(super) fn halves(self) -> [Self; 2] {
        let Self { divisor, remainder } = self;
        [remainder, remainder + divisor].map(|remainder| Self { divisor: 2 * divisor, remainder })
    }
}

/// A share as it is stored, until another invocation goes on with it: perhaps one of another release.
///
/// What is in a share depends on how keys are made, so it says how. For a release that makes them otherwise it is all of
/// them: then everything is looked at anew, which marks some studies once more, and leaves none out. The first release that
/// stored shares did not say how it made keys, and reads `divisor` and `remainder` alone; so these say "all" as well.
#[derive(Serialize, Deserialize)]
struct Stored {
    divisor: u64,
    remainder: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<StoredOf>,
}

#[derive(Serialize, Deserialize)]
struct StoredOf {
    keys: String,
    divisor: u64,
    remainder: u64,
}

impl From<Share> for Stored {
    fn from(share: Share) -> Self {
        let Share { divisor, remainder } = share;
        let of = (share != Share::ALL).then(|| StoredOf { keys: KEYS.clone(), divisor, remainder });
        Self { divisor: Share::ALL.divisor, remainder: Share::ALL.remainder, of }
    }
}

impl From<Stored> for Share {
    fn from(stored: Stored) -> Self {
        let halved = |of: &StoredOf| of.divisor.is_power_of_two() && of.remainder < of.divisor;
        match stored.of.filter(|of| of.keys == *KEYS && halved(of)) {
            Some(StoredOf { divisor, remainder, .. }) => Self { divisor, remainder },
            None => Self::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_comes_back_as_it_was_stored() {
        let [even, odd] = Share::ALL.halves();
        for share in [Share::ALL, even, odd, odd.halves()[1]] {
            let stored = serde_json::to_value(share).unwrap();
            assert_eq!(serde_json::from_value::<Share>(stored.clone()).unwrap(), share);
            // What the release before reads of it.
            assert_eq!((&stored["divisor"], &stored["remainder"]), (&1.into(), &0.into()));
        }
    }

    #[test]
    fn a_share_of_keys_that_were_made_otherwise_is_all_of_them() {
        let others = [
            r#"{ "divisor": 2, "remainder": 1 }"#,
            r#"{ "divisor": 1, "remainder": 0, "of": { "keys": "0, Unicode 1.0.0", "divisor": 2, "remainder": 1 } }"#,
        ];
        for stored in others {
            assert_eq!(serde_json::from_str::<Share>(stored).unwrap(), Share::ALL, "{stored}");
        }
        for (divisor, remainder) in [(0, 0), (3, 1), (2, 2)] {
            let of = Some(StoredOf { keys: KEYS.clone(), divisor, remainder });
            assert_eq!(Share::from(Stored { divisor: 1, remainder: 0, of }), Share::ALL, "{divisor}");
        }
    }
}
