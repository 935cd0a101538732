//! Marking the duplicates of a search, as far as its files are read.
//!
//! Each file that was read to its end is remembered first, and then everything is looked at that is remembered. Of two
//! files that end at the same time at least one therefore sees the other, the last one sees all of them, and marks only
//! ever become surer ones, or those of earlier studies: whatever the order, the marks in the end are the same. A file that is
//! refused is never remembered, so no mark names a study that is not there.
//!
//! What studies have in common is looked at share by share, so memory is bounded; and between two shares it may be left
//! to the next invocation.

use std::collections::{BTreeMap, BTreeSet};

use imports::messages::StartParsing;
use imports::{Duplicate, Identity, Mark, Matcher, ParsedFile, Part, SearchId, Share, StudyId, Tier};
use messages::StoreError;

use super::ParseReferences;
use super::file::Time;

/// How many studies are looked at together, and how many marks are stored together.
const PAGE: usize = 1_000;

/// How many earlier studies are read together, to be compared with those of a page.
const COMPARED: usize = 4_000;

/// A study, by its file's position and its record.
type Place = (u32, u64);

impl ParseReferences {
    /// Remembers that a file was read to its end, and marks the duplicates among all such files of its search, in these
    /// shares. Returns those that the time was not enough for.
    pub(crate) async fn finish(
        &self,
        search_id: SearchId,
        command: &StartParsing,
        (parts, mut shares): (Vec<Part>, Vec<Share>),
        time: &Time<'_>,
    ) -> Result<Vec<Share>, StoreError> {
        let file = ParsedFile {
            search_id,
            file_id: command.file_id,
            position: command.position,
            name: command.file_name.clone(),
            object: command.object.clone(),
            parts,
        };
        self.studies.finish(&file).await?;
        let files = self.stored.parsed(search_id).await?;
        // What another release has left may have become all of it, several times over.
        if shares.contains(&Share::ALL) {
            shares = vec![Share::ALL];
        }
        while let Some(share) = shares.pop() {
            shares.extend(self.mark(search_id, &files, share).await?);
            if time.is_over() {
                break;
            }
        }
        Ok(shares)
    }

    /// Marks the duplicates in a share; returns what of it was too much.
    async fn mark(
        &self,
        search_id: SearchId,
        files: &[ParsedFile],
        share: Share,
    ) -> Result<Vec<Share>, StoreError> {
        let (mut matcher, mut left) = (Matcher::of(share), Vec::new());
        for file in files {
            let mut after = 0;
            loop {
                let page = self.stored.identities(search_id, file.file_id, after, PAGE).await?;
                let Some(last) = page.last() else { break };
                after = last.record;
                self.mark_page(files, file, &page, &mut matcher).await?;
                left.extend(matcher.confine());
            }
        }
        Ok(left)
    }

    /// Marks those of a page that repeat an earlier study.
    async fn mark_page(
        &self,
        files: &[ParsedFile],
        file: &ParsedFile,
        page: &[Identity],
        matcher: &mut Matcher,
    ) -> Result<(), StoreError> {
        let mut page = Page { file, studies: page, marks: BTreeMap::new() };
        let mut pairs: Vec<(&Identity, Place)> = Vec::new();
        for study in page.studies {
            pairs.extend(matcher.look(file.position, study).into_iter().map(|earlier| (study, earlier)));
            if pairs.len() >= COMPARED {
                self.compare(files, &mut page, &std::mem::take(&mut pairs)).await?;
            }
        }
        self.compare(files, &mut page, &pairs).await?;
        let marks = page.marks.into_iter().map(|(record, duplicate)| Mark {
            search_id: file.search_id,
            file_id: file.file_id,
            record,
            duplicate,
        });
        self.studies.mark(&marks.collect::<Vec<_>>()).await
    }

    /// Compares studies of a page with earlier ones.
    async fn compare(
        &self,
        files: &[ParsedFile],
        page: &mut Page<'_>,
        pairs: &[(&Identity, Place)],
    ) -> Result<(), StoreError> {
        let here = page.file.position;
        let first = page.studies.first().map_or(0, |study| study.record);
        let known: BTreeMap<u64, &Identity> =
            page.studies.iter().map(|study| (study.record, study)).collect();
        let is_known = |(position, record): &Place| *position == here && *record >= first;
        let earlier: BTreeSet<Place> =
            pairs.iter().map(|(_, earlier)| *earlier).filter(|earlier| !is_known(earlier)).collect();
        let mut read: BTreeMap<Place, Identity> = BTreeMap::new();
        for original in files {
            let records = earlier.range((original.position, 0)..=(original.position, u64::MAX));
            let records: Vec<u64> = records.map(|(_, record)| *record).collect();
            for records in records.chunks(PAGE) {
                let found = self.stored.identities_of(original.search_id, original.file_id, records).await?;
                read.extend(found.into_iter().map(|study| ((original.position, study.record), study)));
            }
        }
        for (study, place) in pairs {
            let other = if is_known(place) { known.get(&place.1).copied() } else { read.get(place) };
            let original = files.iter().find(|file| file.position == place.0);
            if let Some((other, original)) = other.zip(original) {
                page.note(study, other, original);
            }
        }
        Ok(())
    }
}

/// Some studies of a file, and their marks so far.
struct Page<'a> {
    file: &'a ParsedFile,
    studies: &'a [Identity],
    marks: BTreeMap<u64, Duplicate>,
}

impl Page<'_> {
    /// Marks a study if it repeats an earlier one of this file, and has no mark that stands above that.
    fn note(&mut self, study: &Identity, earlier: &Identity, original: &ParsedFile) {
        let ParsedFile { search_id, file_id, position, .. } = *original;
        let record = earlier.record;
        let known = self.marks.get(&study.record);
        // Where thousands are the same, one comparison is enough for each.
        if known.is_some_and(|mark| {
            mark.tier == Tier::Certain && (mark.position, mark.record) <= (position, record)
        }) {
            return;
        }
        let Some((tier, reason)) = study.repeats(&earlier.fields) else { return };
        let of = StudyId::of(search_id, file_id, record);
        let new = Duplicate { of, file_id, position, record, tier, reason };
        if known.is_none_or(|mark| new.rank() < mark.rank()) {
            self.marks.insert(study.record, new);
        }
    }
}
