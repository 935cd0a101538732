//! The results of the latest lookups of keys.

use std::collections::{BTreeMap, HashMap};

use imports::StudyRef;

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
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn has(&self, key: u64) -> bool {
        self.found.contains_key(&key)
    }

    /// Returns the studies of each of these keys that is remembered.
    pub(super) fn get(&self, keys: &[u64]) -> Vec<(u64, Vec<StudyRef>)> {
        keys.iter().filter_map(|key| Some((*key, self.found.get(key)?.clone()))).collect()
    }

    /// Adds the result of a lookup of these keys, up to a limit.
    pub(super) fn add(&mut self, keys: &[u64], found: &BTreeMap<u64, Vec<StudyRef>>) {
        for key in keys {
            let studies = found.get(key).cloned().unwrap_or_default();
            self.remembered += 1 + studies.len();
            if self.remembered > MAX_REMEMBERED {
                return;
            }
            self.found.insert(*key, studies);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_studies_are_cached_up_to_limit() {
        let mut recent = RecentLookups::default();
        recent.add(&[1, 2], &BTreeMap::new());
        assert!(recent.has(1) && recent.has(2) && !recent.has(3));
        assert_eq!(recent.get(&[1, 3]), [(1, Vec::new())]);
        recent.add(&Vec::from_iter(3..=MAX_REMEMBERED as u64 + 9), &BTreeMap::new());
        assert_eq!(recent.found.len(), MAX_REMEMBERED);
        recent.clear();
        assert!(!recent.has(1));
    }
}
