//! Marking the duplicates of a search, as far as its files are read.
//!
//! Each file that was read to its end is remembered first, and then everything is looked at that is remembered. Of two
//! files that end at the same time at least one therefore sees the other, the last one sees all of them, and marks only
//! ever become those of earlier studies: whatever the order, the marks in the end are the same. A file that is refused
//! is never remembered, so no mark names a study that is not there.
//!
//! What studies have in common is looked at share by share, so memory is bounded; and between two shares it may be left
//! to the next invocation.

use imports::messages::StartParsing;
use imports::{Duplicate, Mark, Matcher, ParsedFile, SearchId, Share, StudyId};
use messages::StoreError;

use super::ParseReferences;
use super::file::Time;

/// How many studies are looked at together, and how many marks are stored together.
const PAGE: usize = 1_000;

impl ParseReferences {
    /// Remembers that a file was read to its end, and marks the duplicates among all such files of its search, in these
    /// shares. Returns those that the time was not enough for.
    pub(crate) async fn finish(
        &self,
        search_id: SearchId,
        command: &StartParsing,
        mut shares: Vec<Share>,
        time: &Time<'_>,
    ) -> Result<Vec<Share>, StoreError> {
        let file = ParsedFile {
            search_id,
            file_id: command.file_id,
            position: command.position,
            name: command.file_name.clone(),
            object: command.object.clone(),
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
                let marks = page.iter().filter_map(|study| {
                    let (position, record, reason) = matcher.look(file.position, study)?;
                    let original = files.iter().find(|file| file.position == position)?.file_id;
                    let of = StudyId::of(search_id, original, record);
                    let duplicate = Duplicate { of, file_id: original, position, record, reason };
                    Some(Mark { search_id, file_id: file.file_id, record: study.record, duplicate })
                });
                self.studies.mark(&marks.collect::<Vec<_>>()).await?;
                left.extend(matcher.confine());
            }
        }
        Ok(left)
    }
}
