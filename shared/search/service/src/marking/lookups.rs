//! The results of the latest lookups of keys.

use std::collections::{BTreeMap, HashMap};

use imports::StudyRef;

/// The studies with each key.
pub(super) type StudiesByKey = BTreeMap<u64, Vec<StudyRef>>;

/// The maximum number of remembered keys and studies, about a megabyte.
const MAX_REMEMBERED: usize = 20_000;

/// The results of the lookups for the latest page of studies. Most studies that are reached from one of them share its
/// keys, so that these need not be looked up again.
#[derive(Debug, Default)]
pub(super) struct RecentLookups {
    found: HashMap<u64, Vec<StudyRef>>,
    remembered: usize,
}

impl RecentLookups {
    pub(super) fn has(&self, key: u64) -> bool {
        self.found.contains_key(&key)
    }

    /// Returns the studies of each of these keys that is remembered.
    pub(super) fn get(&self, keys: &[u64]) -> Vec<(u64, Vec<StudyRef>)> {
        keys.iter().filter_map(|key| Some((*key, self.found.get(key)?.clone()))).collect()
    }

    /// Adds the results of lookups, up to a limit.
    pub(super) fn add(&mut self, found: &StudiesByKey) {
        for (key, studies) in found {
            self.remembered += 1 + studies.len();
            if self.remembered > MAX_REMEMBERED {
                return;
            }
            self.found.insert(*key, studies.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_studies_are_cached_up_to_limit() {
        let unknown = |keys: &[u64]| keys.iter().map(|key| (*key, Vec::new())).collect();
        let mut recent = RecentLookups::default();
        recent.add(&unknown(&[1, 2]));
        assert!(recent.has(1) && recent.has(2) && !recent.has(3));
        assert_eq!(recent.get(&[1, 3]), [(1, Vec::new())]);
        recent.add(&unknown(&Vec::from_iter(3..=MAX_REMEMBERED as u64 + 9)));
        assert_eq!(recent.found.len(), MAX_REMEMBERED);
    }
}
