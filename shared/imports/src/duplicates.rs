//! Which studies of a search are there twice.
//!
//! Two records count as the same work when they have the same DOI, or the same PMID, or, unless both have DOIs that
//! differ, the same title, year and first author, compared without case, accents and punctuation. The later one, in the
//! order of files and records, is marked as a duplicate of the earliest that it matches. It stays: which of the two a
//! review keeps is for the reviewer to say.
//!
//! Adding studies can only give a study a mark or move its mark to an earlier one. So files may be looked at in any
//! order and by several workers at once: whoever stores a mark only has to leave one that names an earlier study.

mod keys;
mod share;

use std::collections::HashMap;

use references::Reference;
use serde::{Deserialize, Serialize};

use self::keys::{key, work};
pub use self::share::Share;
use crate::{FileId, StudyId};

/// What a study is recognised by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its place among the file's records.
    pub record: u64,
    /// Its title; empty when it has none.
    pub title: String,
    /// Its year.
    pub year: Option<i32>,
    /// Its first author, `Family, Given`.
    pub first_author: Option<String>,
    /// Its DOI in lower case.
    pub doi: Option<String>,
    /// Its PubMed identifier.
    pub pmid: Option<String>,
}

impl Identity {
    /// Of record `record` of a file.
    pub fn of(record: u64, reference: Reference) -> Self {
        Self {
            record,
            title: reference.title,
            year: reference.year,
            first_author: reference.authors.into_iter().next(),
            doi: reference.doi,
            pmid: reference.pmid,
        }
    }
}

/// The criterion by which two records count as the same work, the most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The same DOI.
    Doi,
    /// The same PubMed identifier.
    Pmid,
    /// The same title, year and first author.
    TitleYearAuthor,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Doi => "the same DOI",
            Self::Pmid => "the same PMID",
            Self::TitleYearAuthor => "the same title, year and first author",
        })
    }
}

/// The mark of a study that is there before. Of two marks the one of the earlier study stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// The study that it repeats.
    pub of: StudyId,
    /// That study's file.
    pub file_id: FileId,
    /// The place of that file among those of the search, from 0.
    pub position: u32,
    /// That study's record.
    pub record: u64,
    /// The criterion by which the two were matched.
    pub reason: Reason,
}

/// Where a study is: by this order the earliest is found. The position of its file takes 16 bits, and its record 48: a
/// search has at most 50 files, and a file a record for each byte at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

impl Place {
    /// Behind every study.
    const NOWHERE: Self = Self(u64::MAX);
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

/// The earliest studies that have something in common.
#[derive(Debug, Clone, Copy)]
struct Earliest {
    any: Place,
    /// [`Place::NOWHERE`] when all of them have DOIs.
    without_doi: Place,
}

/// How many keys a matcher keeps. The table for them has 2^19 places of 25 bytes, seven eighths of which may be taken:
/// 13 MB, with room for the keys of the thousand studies that are shown before it is asked to confine itself. That takes
/// 7 MB more for a moment.
const MOST_KEYS: usize = 455_000;

/// Finds the duplicates among studies that it is shown in the order of files and records.
///
/// What studies are recognised by is kept as keys, hashes of 64 bits. Among a million studies two different ones have the
/// same key once in ten million searches, and the mark that this leads to removes nothing.
///
/// Memory is bounded whatever the number of studies: a matcher that has too many keys confines itself to a
/// [`Share`] of them, and whoever shows it the studies does so again for the others. Room for all of them is asked for at
/// the beginning, since a table that grows is there twice for a moment; what is not used of it takes no memory.
#[derive(Debug)]
pub struct Matcher {
    share: Share,
    most: usize,
    keys: HashMap<u64, Earliest>,
}

impl Default for Matcher {
    fn default() -> Self {
        Self::of(Share::ALL)
    }
}

impl Matcher {
    /// Looks at nothing else than this share.
    pub fn of(share: Share) -> Self {
        Self { share, most: MOST_KEYS, keys: HashMap::with_capacity(MOST_KEYS) }
    }

    /// The earliest study that is the same work, as its file's position and its record, and why it is; none for one
    /// that is new. Studies are shown in the order of files and records.
    pub fn look(&mut self, position: u32, study: &Identity) -> Option<(u32, u64, Reason)> {
        let here = Place::new(position, study.record);
        let keys = [
            (study.doi.as_ref().map(|doi| key(Reason::Doi, &[doi])), Reason::Doi),
            (study.pmid.as_ref().map(|pmid| key(Reason::Pmid, &[pmid])), Reason::Pmid),
            (work(study), Reason::TitleYearAuthor),
        ];
        let found = keys.into_iter().filter_map(|(key, reason)| {
            let key = key.filter(|key| self.share.has(*key))?;
            // Works with two DOIs that differ are two.
            let any = reason != Reason::TitleYearAuthor || study.doi.is_none();
            Some((self.earliest(key, here, study.doi.is_none(), any)?, reason))
        });
        found.min().map(|(place, reason)| (place.position(), place.record(), reason))
    }

    /// The earliest study with a key, of any or of those without a DOI.
    fn earliest(&mut self, key: u64, here: Place, has_no_doi: bool, any: bool) -> Option<Place> {
        let without_doi = if has_no_doi { here } else { Place::NOWHERE };
        let known = self.keys.entry(key).or_insert(Earliest { any: here, without_doi });
        let found = if any { known.any } else { known.without_doi };
        known.without_doi = known.without_doi.min(without_doi);
        (found < here).then_some(found)
    }

    /// Gives up shares until what is left is not too much, and returns them. What was found so far holds.
    pub fn confine(&mut self) -> Vec<Share> {
        let mut given_up = Vec::new();
        while self.keys.len() > self.most {
            let [kept, other] = self.share.halves();
            self.share = kept;
            // Taken out and put back: the places of keys that are merely removed stay taken, and the table would grow.
            let mut staying = Vec::with_capacity(self.keys.len() / 8 * 5);
            staying.extend(self.keys.drain().filter(|(key, _)| kept.has(*key)));
            self.keys.extend(staying);
            given_up.push(other);
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(record: u64, title: &str, author: &str, doi: &str, pmid: &str) -> Identity {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Identity {
            record,
            title: title.to_owned(),
            year: Some(2020),
            first_author: given(author),
            doi: given(doi),
            pmid: given(pmid),
        }
    }

    fn marks(studies: &[Identity]) -> Vec<Option<(u64, Reason)>> {
        let mut matcher = Matcher::default();
        studies
            .iter()
            .map(|study| matcher.look(0, study).map(|(_, record, reason)| (record, reason)))
            .collect()
    }

    #[test]
    fn each_identifier_is_a_reason_and_the_surest_is_given() {
        let studies = [
            study(1, "A", "X", "10.1/a", "7"),
            study(2, "B", "Y", "10.1/a", ""),
            study(3, "C", "Z", "", "7"),
            study(4, "a.", "X, Anna", "", ""),
            study(5, "A", "X", "10.1/a", "7"),
            study(6, "D", "X", "", ""),
        ];
        let (doi, pmid, work) = (Reason::Doi, Reason::Pmid, Reason::TitleYearAuthor);
        let first = |reason| Some((1, reason));
        assert_eq!(marks(&studies), [None, first(doi), first(pmid), first(work), first(doi), None]);
    }

    #[test]
    fn case_accents_and_punctuation_make_no_difference() {
        let same = [
            study(1, "Überleben: eine Studie", "Müller, Jürgen", "", ""),
            study(2, "uberleben – eine studie.", "MULLER, J", "", ""),
        ];
        assert_eq!(marks(&same), [None, Some((1, Reason::TitleYearAuthor))]);
    }

    #[test]
    fn what_is_missing_matches_nothing() {
        let same = [study(1, "A", "", "", ""), study(2, "A", "", "", ""), study(3, "!", "X", "", "")];
        let undated = Identity { year: None, ..study(4, "B", "X", "", "") };
        let undated_too = Identity { record: 5, ..undated.clone() };
        assert_eq!(
            marks(&[&same[..], &[study(6, "?", "X", "", ""), undated, undated_too]].concat()),
            [None; 6]
        );
    }

    #[test]
    fn different_dois_are_different_works_whatever_the_title() {
        let studies = [
            study(1, "Editorial", "X", "10.1/a", ""),
            study(2, "Editorial", "X", "10.1/b", ""),
            study(3, "Editorial", "X", "", ""),
            study(4, "Editorial", "X", "10.1/c", ""),
        ];
        let work = |record| Some((record, Reason::TitleYearAuthor));
        assert_eq!(marks(&studies), [None, None, work(1), work(3)]);
    }

    /// Shown again for each share, the earliest and most reliable mark of each study is the one that it has otherwise.
    #[test]
    fn however_little_memory_there_is_the_marks_are_the_same() {
        let studies: Vec<_> = (1..=400)
            .map(|n| {
                let named = |what: &str, of: u64| {
                    if n % 3 == 0 { String::new() } else { format!("{what}{}", n % of) }
                };
                study(n, &format!("T{}", n % 90), "X", &named("10.1/", 50), &named("", 70))
            })
            .collect();
        let expected = marks(&studies);
        for most in [1, 7, 50, 1_000] {
            let mut found = vec![None; studies.len()];
            let mut left = vec![Share::ALL];
            while let Some(share) = left.pop() {
                let mut matcher = Matcher { most, ..Matcher::of(share) };
                for (study, mark) in studies.iter().zip(&mut found) {
                    let new = matcher.look(0, study).map(|(_, record, reason)| (record, reason));
                    *mark = [*mark, new].into_iter().flatten().min();
                    left.extend(matcher.confine());
                    assert!(matcher.keys.len() <= most);
                }
            }
            assert_eq!(found, expected, "{most} keys");
        }
    }

    #[test]
    fn giving_shares_up_makes_room_in_the_table_that_there_is() {
        let mut matcher = Matcher { most: 1_000, ..Matcher::default() };
        matcher.keys = HashMap::with_capacity(1_100);
        let room = matcher.keys.capacity();
        for n in 1..=100_000 {
            matcher.look(0, &study(n, "", "", &format!("10.1/{n}"), ""));
            if n % 100 == 0 {
                matcher.confine();
            }
            assert_eq!(matcher.keys.capacity(), room, "after {n} studies");
        }
        assert_ne!(matcher.share, Share::ALL);
    }

    #[test]
    fn places_are_in_the_order_of_files_and_records() {
        let in_order = [(0, 1), (0, 2), (0, 1 << 40), (1, 1), (49, 7)];
        let places = in_order.map(|(position, record)| Place::new(position, record));
        assert!(places.is_sorted() && places.iter().all(|place| *place < Place::NOWHERE));
        assert_eq!(places.map(|place| (place.position(), place.record())), in_order);
    }

    #[test]
    fn more_studies_only_add_marks_or_move_them_to_earlier_ones() {
        let all = [
            study(1, "A", "X", "", "7"),
            study(2, "A", "X", "10.1/a", ""),
            study(3, "B", "Y", "10.1/a", "7"),
            study(4, "B", "Y", "", ""),
            study(5, "A", "X", "10.1/b", "7"),
        ];
        let complete = marks(&all);
        for chosen in 0_u32..1 << all.len() {
            let some: Vec<_> =
                all.iter().filter(|study| chosen & (1 << (study.record - 1)) != 0).cloned().collect();
            for (study, mark) in some.iter().zip(marks(&some)) {
                let final_mark = complete[usize::try_from(study.record).unwrap() - 1];
                assert!(mark.is_none() || final_mark <= mark, "{study:?}: {mark:?}, then {final_mark:?}");
                assert!(mark.is_none() || final_mark.is_some());
            }
        }
    }
}
