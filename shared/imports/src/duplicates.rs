//! Which studies of a search are there twice.
//!
//! What two records have to have in common is the table of the crate `duplicates`. The later one, in the order of files and
//! records, is marked as a duplicate: of the earliest that it is certainly the same as or, without one, of the earliest that
//! is likely the same. It stays: which of the two a review keeps is for the reviewer to say.
//!
//! Adding studies can only give a study a mark, a surer mark, or one of an earlier study. So files may be looked at in any
//! order and by several workers at once: whoever stores a mark only has to leave one that stands above it.

mod mark;
mod share;

use std::collections::HashMap;

use ::duplicates::Fields;
pub use ::duplicates::{Reason, Tier};
use references::Reference;

pub use self::mark::Duplicate;
pub use self::share::Share;

/// What a study is recognised by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its place among the file's records.
    pub record: u64,
    /// What of it is compared.
    pub fields: Fields,
}

impl Identity {
    /// Of record `record` of a file.
    pub fn of(record: u64, reference: &Reference) -> Self {
        Self { record, fields: Fields::of(reference) }
    }

    /// How sure it is that an earlier study is the same work, and why; none when it is another one, or only possibly the
    /// same.
    pub fn repeats(&self, earlier: &Fields) -> Option<(Tier, Reason)> {
        ::duplicates::compare(earlier, &self.fields).filter(|(tier, _)| *tier > Tier::Possible)
    }
}

/// Where a study is: by this order the earliest is found. The position of its file takes 16 bits, and its record 48: a
/// search has at most 50 files, and a file a record for each byte at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

impl Place {
    const RECORD_BITS: u32 = 48;

    fn new(position: u32, record: u64) -> Self {
        let last = (1 << Self::RECORD_BITS) - 1;
        Self(u64::from(position) << Self::RECORD_BITS | record.min(last))
    }

    fn position(self) -> u32 {
        u32::try_from(self.0 >> Self::RECORD_BITS).unwrap_or(u32::MAX)
    }

    fn record(self) -> u64 {
        self.0 & ((1 << Self::RECORD_BITS) - 1)
    }
}

/// How many keys a matcher keeps. The table for them has 2^21 places of 17 bytes, seven eighths of which may be taken:
/// 36 MB, with room for the keys of the thousand studies that are shown before it is asked to confine itself. That takes
/// 18 MB more for a moment, and so does growing to this size.
const MOST_KEYS: usize = 1_800_000;

/// How many studies are kept of those that have a key in common: the earliest. Copies of a record are found by any of
/// these. What thousands have in common that are not copies, such as the DOI of a supplement, tells nothing.
const MOST_OF_A_KEY: u64 = 50;

/// The bits of a key that tell the studies apart which have it in common. A share is a remainder by a power of two, far below
/// these.
const NTH: u32 = 56;

/// Finds the studies that may be duplicates among those that it is shown in the order of files and records.
///
/// Memory is bounded whatever the number of studies: a matcher that has too many keys confines itself to a
/// [`Share`] of them, and whoever shows it the studies does so again for the others.
#[derive(Debug)]
pub struct Matcher {
    share: Share,
    most: usize,
    /// The places of studies by their keys: the first at the key itself, the next one at the key with other upper bits, and
    /// so on. Two keys that meet there lead to a comparison too many, and to nothing else.
    places: HashMap<u64, Place>,
}

impl Default for Matcher {
    fn default() -> Self {
        Self::of(Share::ALL)
    }
}

impl Matcher {
    /// Looks at nothing else than this share.
    pub fn of(share: Share) -> Self {
        Self { share, most: MOST_KEYS, places: HashMap::new() }
    }

    /// The earlier studies that have something in common with one, as positions of their files and their records, in their
    /// order. Studies are shown in the order of files and records.
    pub fn look(&mut self, position: u32, study: &Identity) -> Vec<(u32, u64)> {
        let here = Place::new(position, study.record);
        let mut found = Vec::new();
        for key in study.fields.keys() {
            if !self.share.has(key) {
                continue;
            }
            for nth in 0..MOST_OF_A_KEY {
                match *self.places.entry(key ^ nth << NTH).or_insert(here) {
                    known if known == here => break,
                    known => found.push(known),
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|place| (place.position(), place.record())).collect()
    }

    /// Gives up shares until what is left is not too much, and returns them. What was found so far holds.
    pub fn confine(&mut self) -> Vec<Share> {
        let mut given_up = Vec::new();
        while self.places.len() > self.most {
            let [kept, other] = self.share.halves();
            self.share = kept;
            // Taken out and put back: the places of keys that are merely removed stay taken, and the table would grow.
            let mut staying = Vec::with_capacity(self.places.len() / 8 * 5);
            staying.extend(self.places.drain().filter(|(key, _)| kept.has(*key)));
            self.places.extend(staying);
            given_up.push(other);
        }
        given_up
    }
}

#[cfg(test)]
mod tests;
