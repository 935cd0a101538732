//! The contract of [`IndexWords`], and of the words and selected studies of [`ReadStudies`].

use imports::words::{BucketRange, END, PartBuilder, UnindexedFile};
use imports::{
    FileFence, FileRef, IndexWords, ParseAttempts, ReadStudies, ReadingStatus, Study, WordQuery, WriteStudies,
};
use messages::{Host, StoreError};

use crate::search;
use contracts::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// Stores words.
    pub index: &'a dyn IndexWords,
    /// Reads.
    pub read: &'a dyn ReadStudies,
    /// Writes.
    pub write: &'a dyn WriteStudies,
    /// Gives fences.
    pub track: &'a dyn ParseAttempts,
    /// Ids.
    pub host: &'a dyn Host,
}

impl Ports<'_> {
    /// Stores a file with these studies that is not listed as completed.
    async fn stored(&self, studies: &[(u64, &str)]) -> Result<FileRef, StoreError> {
        let (search_id, file_id) = (sample::partition(self.host), search::file(self.host));
        let fence = self.track.start(search_id, file_id, 1).await?.fence;
        let studies =
            studies.iter().map(|(record, title)| titled(FileRef { search_id, file_id }, *record, title));
        self.write.store(&FileFence { search_id, file_id, fence }, studies.collect(), vec![]).await?;
        Ok(FileRef { search_id, file_id })
    }

    /// Stores a completed file with these studies.
    async fn completed(&self, studies: &[(u64, &str)]) -> Result<FileRef, StoreError> {
        let file = self.stored(studies).await?;
        self.write.finish(&search::parsed(file.search_id, file.file_id, 0)).await?;
        Ok(file)
    }

    /// Returns the record up to which a file is indexed, or `None` if it is not listed.
    async fn indexed(&self, file: FileRef) -> Result<Option<u64>, StoreError> {
        let mut after = None;
        loop {
            let page = self.index.unindexed(after, 2).await?;
            let found = page.iter().find(|known| FileRef::new(known.search_id, known.file_id) == file);
            let Some(UnindexedFile { search_id, file_id, .. }) = page.last() else { return Ok(None) };
            if let Some(found) = found {
                return Ok(Some(found.after));
            }
            after = Some(FileRef::new(*search_id, *file_id));
        }
    }

    /// Stores a part with the words of these studies.
    async fn index(
        &self,
        file: FileRef,
        after: u64,
        studies: &[(u64, &str)],
        is_last: bool,
    ) -> Result<bool, StoreError> {
        let mut part = PartBuilder::new(after);
        for (record, title) in studies {
            part.add(*record, &titled(file, *record, title).reference);
        }
        self.index.store_words(file.search_id, file.file_id, part.finish(is_last)).await
    }

    /// Returns the candidates for a text in the part that follows a record, and the end of the part.
    async fn candidates(
        &self,
        file: FileRef,
        after: u64,
        text: &str,
    ) -> Result<Option<(Vec<u64>, u64)>, Failure> {
        let query = WordQuery::new(text)?;
        match self.read.words(file.search_id, file.file_id, after, &query.buckets()).await? {
            Some(part) => Ok(Some((query.candidates(&part)?, part.last))),
            None => Ok(None),
        }
    }

    /// Checks the candidates for each text in the part that follows a record.
    async fn check(&self, file: FileRef, expected: &[Candidates<'_>]) -> Result<(), Failure> {
        for (after, text, found) in expected {
            let found = found.map(|(records, last)| (records.to_vec(), last));
            assert_eq!(self.candidates(file, *after, text).await?, found, "{text} after {after}");
        }
        Ok(())
    }
}

fn titled(file: FileRef, record: u64, title: &str) -> Study {
    let mut study = search::study(file.search_id, file.file_id, record);
    title.clone_into(&mut study.reference.title);
    study
}

/// The error of a check.
type Failure = Box<dyn std::error::Error + Send + Sync>;
/// A record number, a text, and its candidates in the part that follows the record, with the end of the part; `None` if
/// these records are not indexed.
type Candidates<'a> = (u64, &'a str, Option<(&'a [u64], u64)>);

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    studies_are_read_by_their_records(ports).await?;
    words_are_found_part_by_part(ports).await?;
    only_requested_buckets_are_read(ports).await?;
    part_is_stored_once_and_in_order(ports).await?;
    file_that_is_not_completed_is_not_indexed(ports).await?;
    words_of_a_removed_file_are_deleted(ports).await
}

/// The studies are in the order of the request and up to a size.
pub async fn studies_are_read_by_their_records(ports: &Ports<'_>) -> CheckResult {
    let file = ports.stored(&[(1, "One"), (3, "Three"), (4, "Four"), (9, "Nine")]).await?;
    let read = async |records: &[u64], bytes| {
        let studies = ports.read.studies_at(file.search_id, file.file_id, records, bytes).await?;
        Ok::<_, StoreError>(studies.iter().map(|study| study.record).collect::<Vec<_>>())
    };
    assert_eq!(read(&[1, 2, 4, 9, 10], usize::MAX).await?, [1, 4, 9]);
    assert_eq!(read(&[3, 9], 1).await?, [3]);
    assert!(read(&[], usize::MAX).await?.is_empty() && read(&[2], usize::MAX).await?.is_empty());
    assert_eq!(
        ports.read.studies_at(file.search_id, file.file_id, &[4], 1).await?,
        [titled(file, 4, "Four")]
    );
    Ok(())
}

/// Each part has its own records.
pub async fn words_are_found_part_by_part(ports: &Ports<'_>) -> CheckResult {
    let (first, second) =
        ([(1, "Acute asthma"), (4, "Ärztin")], [(7, "Asthma in adults"), (900, "astigmatism")]);
    let file = ports.completed(&[first, second].concat()).await?;
    assert_eq!(ports.indexed(file).await?, Some(0));
    ports.check(file, &[(0, "asthma", None)]).await?;
    assert!(ports.index(file, 0, &first, false).await?);
    assert_eq!(ports.indexed(file).await?, Some(4));
    let of_first: [Candidates<'_>; 3] =
        [(0, "asthma", Some((&[1], 4))), (3, "arztin", Some((&[4], 4))), (4, "asthma", None)];
    ports.check(file, &of_first).await?;
    assert!(ports.index(file, 4, &second, true).await?);
    assert_eq!(ports.indexed(file).await?, None);
    ports.check(file, &of_first[..2]).await?;
    ports.check(file, &[(4, "ast", Some((&[7, 900], END))), (900, "ast", Some((&[7, 900], END)))]).await
}

/// A request names a bucket, or all buckets whose key begins with a character.
pub async fn only_requested_buckets_are_read(ports: &Ports<'_>) -> CheckResult {
    let studies = [(1, "a ab abc abd ac b 阿 a阿 zz z\u{10ffff}")];
    let file = ports.completed(&studies).await?;
    assert!(ports.index(file, 0, &studies, true).await?);
    let read = async |key: &str, is_open| {
        let range = BucketRange { key: key.to_owned(), is_open };
        let part = ports.read.words(file.search_id, file.file_id, 0, &[range]).await?;
        let buckets = part.into_iter().flat_map(|part| part.buckets);
        let mut keys: Vec<String> = buckets.map(|bucket| bucket.key).collect();
        keys.sort_unstable();
        Ok::<_, StoreError>(keys)
    };
    assert_eq!(read("ab", false).await?, ["ab"]);
    assert_eq!(read("a", false).await?, ["a"]);
    assert_eq!(read("a", true).await?, ["a", "ab", "ac"]);
    assert_eq!(read("z", true).await?, ["z", "zz"]);
    assert!(read("q", true).await?.is_empty() && read("\u{10ffff}", true).await?.is_empty());
    Ok(())
}

/// Two workers may index the same file.
pub async fn part_is_stored_once_and_in_order(ports: &Ports<'_>) -> CheckResult {
    let studies = [(1, "one"), (2, "two")];
    let file = ports.completed(&studies).await?;
    for (after, of, is_last, is_stored, indexed) in [
        // An earlier part is missing.
        (1, &studies[1..], true, false, Some(0)),
        (0, &studies[..1], false, true, Some(1)),
        // Another worker has already stored the part.
        (0, &studies, true, false, Some(1)),
        (1, &[], true, true, None),
        (1, &studies[1..], true, false, None),
    ] {
        assert_eq!(ports.index(file, after, of, is_last).await?, is_stored, "{after}");
        assert_eq!(ports.indexed(file).await?, indexed, "{after}");
    }
    ports.check(file, &[(0, "one", Some((&[1], 1))), (1, "two", Some((&[], END)))]).await
}

/// The call may be rejected.
pub async fn file_that_is_not_completed_is_not_indexed(ports: &Ports<'_>) -> CheckResult {
    let studies = [(1, "one"), (2, "two")];
    let file = ports.stored(&studies).await?;
    assert!(!ports.index(file, 0, &studies, true).await?);
    assert_eq!(ports.indexed(file).await?, None);
    ports.check(file, &[(0, "one", None)]).await
}

/// No words of the file are stored afterwards.
pub async fn words_of_a_removed_file_are_deleted(ports: &Ports<'_>) -> CheckResult {
    let studies = [(1, "one"), (2, "two")];
    let refused = ReadingStatus::refused("deleted", 1);
    let (file, other) = (ports.completed(&studies).await?, ports.completed(&studies).await?);
    for file in [file, other] {
        assert!(ports.index(file, 0, &studies[..1], false).await?);
    }
    ports.write.withdraw(file.search_id, file.file_id, &refused).await?;
    assert!(!ports.index(file, 1, &studies[1..], true).await?);
    ports.write.remove(file.search_id, file.file_id, &refused).await?;
    ports.check(file, &[(0, "one", None)]).await?;
    assert!(!ports.index(file, 0, &studies, true).await?);
    assert_eq!((ports.indexed(file).await?, ports.indexed(other).await?), (None, Some(1)));
    ports.check(other, &[(0, "one", Some((&[1], 1)))]).await
}
