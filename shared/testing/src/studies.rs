//! The contract of [`WriteStudies`], [`ReadStudies`] and [`CompareStudies`].

use futures::future::BoxFuture;
use imports::{
    CompareStudies, Duplicate, DuplicateCounts, FileFence, FileId, FileRef, Identity, Mark, ParseAttempts,
    PreparedStudy, ProjectId, ReadStudies, ReadingStatus, Reason, SearchId, Selection, Study, StudyKeys,
    StudyRef, Tier, WriteStudies,
};
use messages::Host;
use references::Reference;

use crate::search;
use contracts::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// Reads.
    pub read: &'a dyn ReadStudies,
    /// Writes.
    pub write: &'a dyn WriteStudies,
    /// Compares.
    pub compare: &'a dyn CompareStudies,
    /// Gives fences.
    pub track: &'a dyn ParseAttempts,
    /// Ids.
    pub host: &'a dyn Host,
    /// Makes the record of a stored study unreadable, bypassing the ports.
    pub damage: &'a Damage<'a>,
}

/// Makes the record of a stored study unreadable.
pub type Damage<'a> = dyn Fn(StudyRef) -> BoxFuture<'a, CheckResult> + Send + Sync + 'a;

impl Ports<'_> {
    /// Starts an attempt at a file, and returns its fence.
    async fn begin(&self, search_id: SearchId, file_id: FileId) -> Result<FileFence, messages::StoreError> {
        self.begin_by(search_id, file_id, READER).await
    }

    /// Works like [`Self::begin`], and stores some studies of the file.
    async fn begin_with(
        &self,
        search: SearchId,
        file: FileId,
        studies: &[Study],
    ) -> Result<FileFence, messages::StoreError> {
        let held = self.begin(search, file).await?;
        self.write.store(&held, studies.to_vec(), vec![]).await?;
        Ok(held)
    }

    /// Works like [`Self::begin`], with another reader version.
    async fn begin_by(
        &self,
        search_id: SearchId,
        file_id: FileId,
        reader: u32,
    ) -> Result<FileFence, messages::StoreError> {
        let fence = self.track.start(search_id, file_id, reader).await?.fence;
        Ok(FileFence { search_id, file_id, fence })
    }
}

/// The default version of the reader.
const READER: u32 = 7;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    storing_twice_stores_once(ports).await?;
    study_prepared_for_another_store_is_rejected(ports).await?;
    pages_are_in_order_of_records(ports).await?;
    quarantined_records_are_listed_once_in_order(ports).await?;
    identities_are_read_without_other_fields(ports).await?;
    unreadable_study_is_compared_with_no_other(ports).await?;
    completed_files_are_listed_in_order(ports).await?;
    duplicates(ports).await?;
    withdrawn_file_is_not_listed(ports).await?;
    marked_studies_are_listed_separately(ports).await?;
    page_ends_with_study_that_fills_it(ports).await?;
    study_keeps_its_known_position(ports).await?;
    discard_does_not_affect_other_files(ports).await?;
    attempt_before_discard_stores_nothing(ports).await?;
    completed_file_is_not_discarded(ports).await?;
    refused_file_stays_refused(ports).await?;
    removed_file_stays_deleted(ports).await?;
    other_reader_version_restarts_a_file(ports).await?;
    many_records_are_discarded(ports).await
}

/// Checks the contract of duplicate studies.
async fn duplicates(ports: &Ports<'_>) -> CheckResult {
    later_revision_replaces_a_mark(ports).await?;
    marks_are_counted_by_kind(ports).await?;
    duplicates_of_studies_are_found(ports).await?;
    project_revision_counts_changes(ports).await?;
    studies_are_found_by_shared_keys(ports).await?;
    keys_shared_with_others_are_returned(ports).await?;
    removed_studies_are_not_found(ports).await
}

/// A batch that is stored again, partially or completely, adds only new studies.
pub async fn storing_twice_stores_once(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let studies: Vec<_> = (1..=5).map(|record| search::study(search, file, record)).collect();
    let held = ports.begin(search, file).await?;
    ports.write.store(&held, studies[..3].to_vec(), vec![]).await?;
    ports.write.store(&held, studies.clone(), vec![]).await?;
    ports.write.store(&held, studies.clone(), vec![]).await?;
    assert_eq!(ports.read.studies(search, file, 0, 100).await?, studies);
    Ok(())
}

/// The whole batch of the study is rejected, and a retry fails in the same way.
pub async fn study_prepared_for_another_store_is_rejected(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let held = ports.begin(search, file).await?;
    let studies = vec![ports.write.prepare(search::study(search, file, 1))?, PreparedStudy::new("foreign")];
    let unread = vec![search::quarantined(search, file, 3)];
    let stored = ports.write.store_prepared(&held, studies, unread).await;
    assert!(stored.as_ref().is_err_and(|error| !error.is_retryable()), "{stored:?}");
    assert_eq!(ports.read.studies(search, file, 0, 10).await?, []);
    assert_eq!(ports.read.quarantined(search, file, 0, 10).await?, []);
    Ok(())
}

/// Each page continues after the last record of the previous one.
pub async fn pages_are_in_order_of_records(ports: &Ports<'_>) -> CheckResult {
    let (search, file, other) =
        (sample::partition(ports.host), search::file(ports.host), search::file(ports.host));
    for record in [12, 3, 7, 100, 1] {
        for file in [file, other] {
            let held = ports.begin(search, file).await?;
            ports.write.store(&held, vec![search::study(search, file, record)], vec![]).await?;
        }
    }
    let page = async |after, limit| {
        let studies = ports.read.studies(search, file, after, limit).await?;
        Ok::<_, messages::StoreError>(studies.iter().map(|study| study.record).collect::<Vec<_>>())
    };
    assert_eq!(page(0, 2).await?, [1, 3]);
    assert_eq!(page(3, 2).await?, [7, 12]);
    assert_eq!(page(12, 2).await?, [100]);
    assert!(page(100, 2).await?.is_empty());
    Ok(())
}

/// Unreadable records are listed in the same order as studies.
pub async fn quarantined_records_are_listed_once_in_order(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let records: Vec<_> = [2, 9, 11].map(|number| search::quarantined(search, file, number)).into();
    let mut reversed = records.clone();
    reversed.reverse();
    let held = ports.begin(search, file).await?;
    ports.write.store(&held, vec![], reversed).await?;
    ports.write.store(&held, vec![], records.clone()).await?;
    assert_eq!(ports.read.quarantined(search, file, 0, 100).await?, records);
    assert_eq!(ports.read.quarantined(search, file, 0, 2).await?, records.split_at(2).0);
    assert_eq!(ports.read.quarantined(search, file, 2, 2).await?, records.split_at(1).1);
    Ok(())
}

/// A study that cannot be read does not prevent the comparison of others. The identity of the unreadable study is
/// empty.
pub async fn unreadable_study_is_compared_with_no_other(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let studies = [search::study(search, file, 1), search::study(search, file, 2)];
    ports.begin_with(search, file, &studies).await?;
    (ports.damage)(StudyRef { search_id: search, file_id: file, record: 1 }).await?;
    let mut found = ports.read.identities_of(search, file, &[1, 2]).await?;
    found.sort_by_key(|study| study.record);
    let sound = Identity::of(2, &studies[1].reference);
    assert_eq!(found, [Identity { record: 1, ..Identity::default() }, sound]);
    Ok(())
}

/// Unreadable records have the same pages as studies.
pub async fn identities_are_read_without_other_fields(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let text = |text: &str| Some(text.to_owned());
    let mut full = search::study(search, file, 1);
    full.reference = Reference {
        authors: vec!["Müller, J.".to_owned(), "Berg, A.".to_owned()],
        year: Some(2019),
        journal: text("J Zinc"),
        volume: text("1"),
        issue: text("2"),
        pages: text("3-4"),
        doi: text("10.5555/a"),
        pmid: text("7"),
        r#abstract: text(&"long ".repeat(99)),
        extra: [("$oid".to_owned(), vec!["x".to_owned()]), ("SN".to_owned(), vec!["1234-5678".to_owned()])]
            .into(),
        ..full.reference
    };
    let held = ports.begin(search, file).await?;
    let studies = [full, search::study(search, file, 2), search::study(search, file, 5)];
    ports.write.store(&held, studies.to_vec(), vec![]).await?;
    let identity = |study: &Study| Identity::of(study.record, &study.reference);
    let keyed = |study: &Study| {
        let mut keyed = StudyKeys { record: study.record, ..StudyKeys::default() };
        keyed.keys = Some(identity(study).fields.keys());
        keyed
    };
    let page = ports.read.keyed(search, file, 0, 2).await?;
    assert_eq!(page, [keyed(&studies[0]), keyed(&studies[1])]);
    assert_eq!(ports.read.keyed(search, file, 2, 2).await?, [keyed(&studies[2])]);
    assert_eq!(ports.read.keyed(search, file, 5, 2).await?, []);
    let mut some = ports.read.identities_of(search, file, &[5, 3, 1]).await?;
    some.sort_by_key(|study| study.record);
    assert_eq!(some, [identity(&studies[0]), identity(&studies[2])]);
    assert_eq!(ports.read.identities_of(search, file, &[]).await?, []);
    assert_eq!(ports.read.identities_of(search, search::file(ports.host), &[1]).await?, []);
    Ok(())
}

/// Each file is listed once, without the files of other searches.
pub async fn completed_files_are_listed_in_order(ports: &Ports<'_>) -> CheckResult {
    let (search, other) = (sample::partition(ports.host), sample::partition(ports.host));
    let files: Vec<_> = (0..3).map(|n| search::parsed(search, search::file(ports.host), n)).collect();
    for n in [1, 2, 0, 1] {
        ports.write.finish(&files[n]).await?;
    }
    ports.write.finish(&search::parsed(other, search::file(ports.host), 0)).await?;
    assert_eq!(ports.read.parsed(search).await?, files);
    Ok(())
}

/// The order of the writes therefore does not matter. Storing a study again keeps its mark.
pub async fn later_revision_replaces_a_mark(ports: &Ports<'_>) -> CheckResult {
    let (search, earlier) = (sample::partition(ports.host), sample::partition(ports.host));
    let (first, second) = (search::file(ports.host), search::file(ports.host));
    let studies = [1, 2, 3].map(|record| search::study(search, second, record));
    let held = ports.begin_with(search, second, &studies).await?;
    let duplicate = |search_id, position, record| {
        let (tier, reason) = (Tier::Likely, Reason::DoiAuthor);
        Duplicate { search_id, file_id: first, position, record, tier, reason }
    };
    let at = |record| StudyRef { search_id: search, file_id: second, record };
    let marks = async || marks(ports, search, second).await;
    assert_eq!(
        (marks().await?, ports.read.marked(search, second).await?),
        (vec![None; 3], DuplicateCounts::default())
    );
    let (one, other) = (duplicate(search, 0, 9), duplicate(earlier, 4, 1));
    let steps = [
        (3, Some(one), Some(one)),
        (2, Some(other), Some(one)),
        (2, None, Some(one)),
        (3, Some(other), Some(other)),
        (5, None, None),
        (4, Some(one), None),
        (6, Some(one), Some(one)),
    ];
    for (revision, duplicate, then) in steps {
        let marked = [3, 77].map(|record| Mark { at: at(record), duplicate });
        ports.compare.mark(revision, &marked).await?;
        assert_eq!(marks().await?, [None, None, then], "after {duplicate:?} of revision {revision}");
        let page = ports.read.keyed(search, second, 2, 9).await?;
        assert_eq!(page.iter().map(|study| study.is_marked).collect::<Vec<_>>(), [then.is_some()]);
        let read = ports.read.identities_of(search, second, &[3]).await?;
        assert_eq!(read.iter().map(|study| study.is_marked).collect::<Vec<_>>(), [then.is_some()]);
    }
    // Removing an absent mark succeeds.
    ports.compare.mark(9, &[Mark { at: at(1), duplicate: None }]).await?;
    ports.compare.mark(8, &[Mark { at: at(1), duplicate: Some(one) }]).await?;
    ports.write.store(&held, studies.to_vec(), vec![]).await?;
    ports.compare.mark(9, &[]).await?;
    assert_eq!(marks().await?, [None, None, Some(one)]);
    Ok(())
}

/// Marks are counted by tier, and decisions of reviewers separately.
pub async fn marks_are_counted_by_kind(ports: &Ports<'_>) -> CheckResult {
    let (search_id, file_id) = (sample::partition(ports.host), search::file(ports.host));
    let studies: Vec<_> = (1..=9).map(|record| search::study(search_id, file_id, record)).collect();
    ports.begin_with(search_id, file_id, &studies).await?;
    let kinds = [
        (Tier::Certain, Reason::Pmid),
        (Tier::Certain, Reason::TitlePage),
        (Tier::Certain, Reason::Doi),
        (Tier::Certain, Reason::Said),
        (Tier::Likely, Reason::DoiAuthorAlike),
        (Tier::Likely, Reason::DoiUntitled),
        (Tier::Possible, Reason::DoiAuthor),
    ];
    let marks = (3..).zip(kinds).map(|(record, (tier, reason))| {
        let duplicate = Duplicate { search_id, file_id, position: 0, record: 1, tier, reason };
        Mark { at: StudyRef { search_id, file_id, record }, duplicate: Some(duplicate) }
    });
    ports.compare.mark(1, &marks.collect::<Vec<_>>()).await?;
    let unmarked = Mark { at: StudyRef { search_id, file_id, record: 2 }, duplicate: None };
    ports.compare.mark(1, &[unmarked]).await?;
    let marked = DuplicateCounts { certain: 3, likely: 2, said: 1, possible: 1 };
    assert_eq!(ports.read.marked(search_id, file_id).await?, marked);
    assert_eq!(ports.read.marked(search_id, search::file(ports.host)).await?, DuplicateCounts::default());
    for (least, records) in [(Tier::Possible, 3..=9), (Tier::Likely, 3..=8), (Tier::Certain, 3..=6)] {
        let selection = Selection { marked: Some(least), after: 0, limit: 100, bytes: usize::MAX };
        let found = ports.read.select(search_id, file_id, selection).await?;
        assert!(found.iter().map(|study| study.record).eq(records), "at least {least}");
    }
    Ok(())
}

/// Only studies that are treated as duplicates are returned, from any file.
pub async fn duplicates_of_studies_are_found(ports: &Ports<'_>) -> CheckResult {
    let (search_id, file_id) = (sample::partition(ports.host), search::file(ports.host));
    let other = (sample::partition(ports.host), search::file(ports.host));
    for (search, file) in [(search_id, file_id), other] {
        let studies: Vec<_> = (1..=5).map(|record| search::study(search, file, record)).collect();
        ports.begin_with(search, file, &studies).await?;
    }
    let own = |record| StudyRef { search_id, file_id, record };
    let others = |record| StudyRef { search_id: other.0, file_id: other.1, record };
    let mark = |at, record, tier| {
        let duplicate = Duplicate { search_id, file_id, position: 0, record, tier, reason: Reason::Doi };
        Mark { at, duplicate: Some(duplicate) }
    };
    let marks = [
        mark(own(3), 1, Tier::Certain),
        mark(others(1), 1, Tier::Likely),
        mark(others(2), 1, Tier::Possible),
        mark(others(4), 2, Tier::Certain),
    ];
    ports.compare.mark(1, &marks).await?;
    let of = async |records: &[u64], limit| {
        let mut found = ports.read.repeating(search_id, file_id, records, limit).await?;
        found.sort_unstable();
        Ok::<_, messages::StoreError>(found)
    };
    let mut all = vec![(1, own(3)), (1, others(1)), (2, others(4))];
    all.sort_unstable();
    assert_eq!(of(&[1, 2, 3], 10).await?, all);
    assert_eq!(of(&[2, 5], 10).await?, [(2, others(4))]);
    assert_eq!(of(&[1], 1).await?.len(), 1);
    assert_eq!(ports.read.repeating(other.0, other.1, &[1, 2], 10).await?, []);
    Ok(())
}

/// Changes of other projects do not count.
pub async fn project_revision_counts_changes(ports: &Ports<'_>) -> CheckResult {
    let [one, other] = [(); 2].map(|()| ProjectId::from_uuid(ports.host.fresh_id()));
    let first = ports.compare.revise(one).await?;
    let second = ports.compare.revise(one).await?;
    ports.compare.revise(other).await?;
    assert!(first > 0 && second > first, "{first}, {second}");
    assert_eq!(ports.compare.revise(one).await?, second + 1);
    Ok(())
}

/// Studies are found in all searches of the project, but in no other project, after their file was completely read.
pub async fn studies_are_found_by_shared_keys(ports: &Ports<'_>) -> CheckResult {
    let common = Common::stored(ports).await?;
    let mut all_a = vec![common.named("a", 0, 1), common.named("a", 0, 7), common.named("a", 1, 5)];
    all_a.sort_unstable();
    assert_eq!(common.sharing(&["a"], 10).await?, all_a);
    assert_eq!(common.sharing(&["b", "d"], 10).await?, [common.named("b", 0, 2)]);
    assert_eq!(common.sharing(&[], 10).await?, []);
    // The studies that were stored first.
    let first = [common.named("a", 0, 1), common.named("a", 0, 7), common.named("b", 0, 2)];
    assert_eq!(common.sharing(&["a", "b"], 2).await?, first);
    Ok(())
}

/// This holds for any page size, and also if the other studies arrive after some keys of the file were returned. More
/// keys may be returned.
pub async fn keys_shared_with_others_are_returned(ports: &Ports<'_>) -> CheckResult {
    let common = Common::stored(ports).await?;
    let (search, later) = (sample::partition(ports.host), search::file(ports.host));
    let of_later = [(1, "e"), (2, "b")].map(|(n, doi)| with_doi(common.project, search, later, n, doi));
    let tells = async |FileRef { search_id: search, file_id: file }, limit, dois: &[(u64, &str, bool)]| {
        let mut after = 0;
        for told in dois.chunks(limit) {
            let page = ports.read.keyed(search, file, after, limit).await?;
            for (study, (record, doi, is_shared)) in page.iter().zip(told) {
                let keys = study.keys.as_deref();
                assert!(
                    keys == Some(&[key_of(doi)][..]) || !is_shared && keys == Some(&[][..]),
                    "{doi}: {study:?}"
                );
                assert_eq!(study.record, *record);
            }
            assert_eq!(page.len(), told.len());
            after = page.last().map_or(after, |last| last.record);
        }
        assert_eq!(ports.read.keyed(search, file, after, limit).await?, []);
        Ok::<_, messages::StoreError>(())
    };
    let keys = [(1, "a", true), (2, "b", false), (7, "a", true)];
    for limit in [3, 1, 2, 10] {
        tells(common.files[0], limit, &keys).await?;
        tells(common.files[1], limit, &[(5, "a", true)]).await?;
    }
    // Other keys may be looked up in between.
    let first = common.files[0];
    ports.read.keyed(first.search_id, first.file_id, 0, 1).await?;
    ports.begin_with(search, later, &of_later).await?;
    let of_later = FileRef::new(search, later);
    tells(of_later, 1, &[(1, "e", false), (2, "b", true)]).await?;
    ports.write.finish(&search::parsed(search, later, 0)).await?;
    tells(first, 1, &[(1, "a", true), (2, "b", true), (7, "a", true)]).await?;
    tells(of_later, 1, &[(1, "e", false), (2, "b", true)]).await?;
    Ok(())
}

/// Studies of a file that was restarted are never found.
pub async fn removed_studies_are_not_found(ports: &Ports<'_>) -> CheckResult {
    let common = Common::stored(ports).await?;
    ports.write.discard(&common.unfinished, None).await?;
    assert_eq!(common.sharing(&["c"], 10).await?, []);
    let [first, second] = common.files;
    ports.write.remove(second.search_id, second.file_id, &search::refused()).await?;
    assert_eq!(common.sharing(&["a"], 10).await?, [common.named("a", 0, 1), common.named("a", 0, 7)]);
    ports.write.remove(first.search_id, first.file_id, &search::refused()).await?;
    assert_eq!(common.sharing(&["a", "b"], 10).await?, []);
    Ok(())
}

/// Studies with DOIs as keys: in two completely read files, in an incomplete one, and in another project.
struct Common<'a, 'p> {
    ports: &'a Ports<'p>,
    project: ProjectId,
    files: [FileRef; 2],
    unfinished: FileFence,
}

impl<'a, 'p> Common<'a, 'p> {
    async fn stored(ports: &'a Ports<'p>) -> Result<Self, messages::StoreError> {
        let (one, other) = (sample::partition(ports.host), sample::partition(ports.host));
        let [first, second, elsewhere, unfinished] = [(); 4].map(|()| search::file(ports.host));
        let [project, foreign] = [(); 2].map(|()| ProjectId::from_uuid(ports.host.fresh_id()));
        let of_first = [(1, "a"), (2, "b"), (7, "a")].map(|(n, doi)| with_doi(project, one, first, n, doi));
        ports.begin_with(one, first, &of_first).await?;
        ports.begin_with(other, second, &[with_doi(project, other, second, 5, "a")]).await?;
        ports.begin_with(one, search::file(ports.host), &[]).await?;
        ports.begin_with(other, elsewhere, &[with_doi(foreign, other, elsewhere, 1, "a")]).await?;
        let studies = [with_doi(project, other, unfinished, 1, "c")];
        let unfinished = ports.begin_with(other, unfinished, &studies).await?;
        for (search, file) in [(one, first), (other, second), (other, elsewhere)] {
            ports.write.finish(&search::parsed(search, file, 0)).await?;
        }
        let files = [FileRef::new(one, first), FileRef::new(other, second)];
        Ok(Self { ports, project, files, unfinished })
    }

    /// Returns the studies that are found by these DOIs, in any order.
    async fn sharing(
        &self,
        dois: &[&str],
        limit: usize,
    ) -> Result<Vec<(String, StudyRef)>, messages::StoreError> {
        let mut keys: Vec<u64> = dois.iter().map(|doi| key_of(doi)).collect();
        keys.sort_unstable();
        let found = self.ports.compare.sharing(self.project, &keys, limit).await?;
        let name = |key| dois.iter().copied().find(|doi| key_of(doi) == key).unwrap_or("none").to_owned();
        let mut found: Vec<_> = found.into_iter().map(|found| (name(found.key), found.at)).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Returns a record of one of the two files, with its DOI.
    fn named(&self, doi: &str, file: usize, record: u64) -> (String, StudyRef) {
        let FileRef { search_id, file_id } = self.files[file];
        (doi.to_owned(), StudyRef { search_id, file_id, record })
    }
}

fn with_doi(project_id: ProjectId, search_id: SearchId, file_id: FileId, record: u64, doi: &str) -> Study {
    let study = search::study(search_id, file_id, record);
    let doi = Some(format!("10.1000/{doi}"));
    Study { project_id, reference: Reference { doi, title: String::new(), ..study.reference }, ..study }
}

/// Returns the only key of a study with nothing but this DOI.
fn key_of(doi: &str) -> u64 {
    let reference =
        Reference { doi: Some(format!("10.1000/{doi}")), title: String::new(), ..Reference::default() };
    let keys = Identity::of(1, &reference).fields.keys();
    assert_eq!(keys.len(), 1, "the test needs one key a study");
    keys[0]
}

/// The stored data of the file is kept until it is deleted, regardless of later attempts, and the file is never read
/// again.
pub async fn withdrawn_file_is_not_listed(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let studies = [search::study(search, file, 1)];
    let held = ports.begin_with(search, file, &studies).await?;
    let parsed = search::parsed(search, file, 0);
    ports.write.finish(&parsed).await?;
    assert_eq!(ports.track.place(search, file).await?, None);
    let refused = search::refused();
    // A worker that deletes it while another one withdraws it again deletes all of it.
    let fence = held.fence + 1;
    for _ in 0..2 {
        ports.write.withdraw(search, file, &refused).await?;
        is_refused(ports, search, file, fence).await?;
        assert_eq!(ports.read.studies(search, file, 0, 10).await?, studies);
    }
    overtaken(&ports.write.store(&held, studies.to_vec(), vec![]).await);
    ports.write.finish(&parsed).await?;
    ports.write.remove(search, file, &refused).await?;
    is_refused(ports, search, file, fence).await?;
    assert_eq!(ports.read.studies(search, file, 0, 10).await?, []);
    Ok(())
}

/// Checks that a file is not listed, and that a new attempt finds it refused under this fence.
async fn is_refused(ports: &Ports<'_>, search: SearchId, file: FileId, fence: u64) -> CheckResult {
    assert_eq!(ports.track.place(search, file).await?, Some(search::refused()));
    let reading = ports.track.start(search, file, READER).await?;
    assert_eq!((reading.place, reading.fence), (Some(search::refused()), fence));
    assert_eq!(ports.read.parsed(search).await?, []);
    Ok(())
}

/// Marks some studies of a file as duplicates of its first study.
async fn mark_some(ports: &Ports<'_>, search_id: SearchId, file_id: FileId, records: &[u64]) -> CheckResult {
    let (tier, reason) = (Tier::Certain, Reason::Pmid);
    let duplicate = Some(Duplicate { search_id, file_id, position: 0, record: 1, tier, reason });
    let mark = |record: &u64| Mark { at: StudyRef { search_id, file_id, record: *record }, duplicate };
    Ok(ports.compare.mark(1, &records.iter().map(mark).collect::<Vec<_>>()).await?)
}

/// Marked studies are returned with their marks, in pages and in the order of records, without those of other files.
pub async fn marked_studies_are_listed_separately(ports: &Ports<'_>) -> CheckResult {
    let (search, file, other) =
        (sample::partition(ports.host), search::file(ports.host), search::file(ports.host));
    let studies = |file| (1..=20).map(|record| search::study(search, file, record)).collect::<Vec<_>>();
    ports.begin_with(search, file, &studies(file)).await?;
    ports.begin_with(search, other, &studies(other)).await?;
    let page = async |after, limit| {
        let selection = Selection { marked: Some(Tier::Likely), after, limit, bytes: usize::MAX };
        let found = ports.read.select(search, file, selection).await?;
        Ok::<_, messages::StoreError>(found.iter().map(|study| study.record).collect::<Vec<_>>())
    };
    assert!(page(0, 10).await?.is_empty());
    mark_some(ports, search, other, &[2, 3]).await?;
    mark_some(ports, search, file, &[17, 4, 9]).await?;
    for (after, limit, records) in
        [(0, 10, &[4, 9, 17][..]), (0, 2, &[4, 9]), (9, 2, &[17]), (17, 2, &[]), (0, 0, &[])]
    {
        assert_eq!(page(after, limit).await?, records, "{limit} after {after}");
    }
    let selection = Selection { marked: Some(Tier::Likely), after: 9, limit: 1, bytes: usize::MAX };
    let marked = ports.read.select(search, file, selection).await?;
    assert_eq!(marked, ports.read.studies(search, file, 16, 1).await?, "with all that they say");
    Ok(())
}

/// The requested number may be larger, but studies may be as large as a record of a file.
pub async fn page_ends_with_study_that_fills_it(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let long = |record| {
        let study = search::study(search, file, record);
        let reference = Reference { r#abstract: Some("x".repeat(10_000)), ..study.reference };
        Study { reference, ..study }
    };
    ports.begin_with(search, file, &(1..=9).map(long).collect::<Vec<_>>()).await?;
    mark_some(ports, search, file, &[2, 3, 4, 5]).await?;
    for (marked, after, bytes, count) in [
        (None, 0, usize::MAX, 9),
        (None, 0, 25_000, 3),
        (None, 7, 25_000, 2),
        (None, 0, 1, 1),
        (Some(Tier::Likely), 0, 15_000, 2),
        (Some(Tier::Certain), 4, 15_000, 1),
    ] {
        let selection = Selection { marked, after, limit: 100, bytes };
        assert_eq!(ports.read.select(search, file, selection).await?.len(), count, "{selection:?}");
    }
    Ok(())
}

/// Earlier versions did not store the position.
pub async fn study_keeps_its_known_position(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let at = |record, bytes| Study { bytes, ..search::study(search, file, record) };
    let studies = [at(1, Some(0..2)), at(2, None), at(3, Some(5_000_000_000..5_000_000_000))];
    ports.begin_with(search, file, &studies).await?;
    assert_eq!(ports.read.studies(search, file, 0, 10).await?, studies);
    Ok(())
}

async fn marks(
    ports: &Ports<'_>,
    search: SearchId,
    file: FileId,
) -> Result<Vec<Option<Duplicate>>, messages::StoreError> {
    let studies = ports.read.studies(search, file, 0, 100).await?;
    Ok(studies.iter().map(|study| study.duplicate).collect())
}

/// A discarded file has no records, and the worker that discarded it may store them again.
pub async fn discard_does_not_affect_other_files(ports: &Ports<'_>) -> CheckResult {
    let (search, file, kept) =
        (sample::partition(ports.host), search::file(ports.host), search::file(ports.host));
    for file in [file, kept] {
        let held = ports.begin(search, file).await?;
        let (study, unread) = (search::study(search, file, 1), search::quarantined(search, file, 2));
        ports.write.store(&held, vec![study], vec![unread]).await?;
    }
    let held = ports.begin(search, file).await?;
    let held = ports.write.discard(&ports.write.discard(&held, None).await?, None).await?;
    assert_eq!(ports.read.studies(search, file, 0, 10).await?, []);
    assert_eq!(ports.read.quarantined(search, file, 0, 10).await?, []);
    assert_eq!(ports.read.studies(search, kept, 0, 10).await?, [search::study(search, kept, 1)]);
    assert_eq!(ports.read.quarantined(search, kept, 0, 10).await?.len(), 1);
    ports.write.store(&held, vec![search::study(search, file, 1)], vec![]).await?;
    assert_eq!(ports.read.studies(search, file, 0, 10).await?.len(), 1);
    assert_eq!(ports.begin(search, file).await?, held);
    Ok(())
}

/// Returns `true` if a call failed because the file has another fence, so that the next attempt may succeed.
fn overtaken<T: std::fmt::Debug>(call: &Result<T, messages::StoreError>) {
    assert!(matches!(call, Err(error) if error.is_retryable()), "{call:?}");
}

/// An outdated attempt, however late, neither stores a checkpoint nor discards the records of others.
pub async fn attempt_before_discard_stores_nothing(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let never_begun = FileFence { search_id: search, file_id: file, fence: 0 };
    overtaken(&ports.write.store(&never_begun, vec![search::study(search, file, 1)], vec![]).await);
    let old = ports.begin_with(search, file, &[search::study(search, file, 1)]).await?;
    let new = ports.write.discard(&old, None).await?;
    let unread = vec![search::quarantined(search, file, 2)];
    overtaken(&ports.write.store(&old, vec![search::study(search, file, 1)], unread).await);
    overtaken(&ports.track.save(&old, &ReadingStatus::Within(serde_json::json!({ "byte": 3 }))).await);
    overtaken(&ports.track.save(&old, &search::end(0)).await);
    ports.write.store(&new, vec![search::study(search, file, 1)], vec![]).await?;
    overtaken(&ports.write.discard(&old, None).await);
    assert_eq!(ports.read.studies(search, file, 0, 10).await?.len(), 1);
    assert_eq!(ports.read.quarantined(search, file, 0, 10).await?, []);
    let reading = ports.track.start(search, file, READER).await?;
    assert_eq!((reading.begun, reading.place, reading.fence), (1, None, new.fence));
    Ok(())
}

/// The reply about the file may already be sent, so its studies have to stay.
pub async fn completed_file_is_not_discarded(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let held = ports.begin_with(search, file, &[search::study(search, file, 1)]).await?;
    let end = search::end(0);
    ports.track.save(&held, &end).await?;
    overtaken(&ports.write.discard(&held, None).await);
    let reading = ports.track.start(search, file, READER + 1).await?;
    assert_eq!((reading.place, reading.fence), (Some(end), held.fence));
    assert_eq!(ports.read.studies(search, file, 0, 10).await?.len(), 1);
    Ok(())
}

/// Concurrent attempts store nothing more, and new attempts receive the reason.
pub async fn refused_file_stays_refused(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let held = ports.begin_with(search, file, &[search::study(search, file, 1)]).await?;
    let refused = ReadingStatus::refused("no \"title\"", 2);
    let after = ports.write.discard(&held, Some(&refused)).await?;
    overtaken(&ports.write.discard(&after, None).await);
    ports.track.save(&after, &ReadingStatus::Within(serde_json::json!({ "byte": 3 }))).await?;
    for reader in [READER, READER + 1] {
        let reading = ports.track.start(search, file, reader).await?;
        assert_eq!((reading.place, reading.fence), (Some(refused.clone()), after.fence));
    }
    assert_eq!(ports.read.studies(search, file, 0, 10).await?, []);
    Ok(())
}

/// This holds before the file is read, while it is read, and after it was completely read.
pub async fn removed_file_stays_deleted(ports: &Ports<'_>) -> CheckResult {
    let refused = ReadingStatus::refused("cancelled", 3);
    for how_far in 0..3 {
        let (search, file) = (sample::partition(ports.host), search::file(ports.host));
        let held = read_so_far(ports, FileRef::new(search, file), how_far).await?;
        for _ in 0..2 {
            ports.write.remove(search, file, &refused).await?;
        }
        // An attempt that does not know of the removal.
        ports.write.finish(&search::parsed(search, file, 0)).await?;
        if let Some(held) = held {
            overtaken(&ports.write.store(&held, vec![search::study(search, file, 3)], vec![]).await);
        }
        assert_eq!(ports.read.studies(search, file, 0, 10).await?, [], "{how_far}");
        assert_eq!(ports.read.quarantined(search, file, 0, 10).await?, [], "{how_far}");
        assert_eq!(ports.read.parsed(search).await?, [], "{how_far}");
        assert_eq!(ports.track.start(search, file, READER).await?.place, Some(refused.clone()));
    }
    Ok(())
}

/// Reads a file: not at all (0), partially (1), or completely (2).
async fn read_so_far(
    ports: &Ports<'_>,
    FileRef { search_id: search, file_id: file }: FileRef,
    how_far: u8,
) -> Result<Option<FileFence>, messages::StoreError> {
    if how_far == 0 {
        return Ok(None);
    }
    let held = ports.begin_with(search, file, &[search::study(search, file, 1)]).await?;
    ports.write.store(&held, vec![], vec![search::quarantined(search, file, 2)]).await?;
    if how_far == 2 {
        ports.track.save(&held, &search::end(0)).await?;
        ports.write.finish(&search::parsed(search, file, 0)).await?;
    }
    Ok(Some(held))
}

/// This holds with and without a checkpoint, because another version may count the records differently.
pub async fn other_reader_version_restarts_a_file(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let old = ports.begin(search, file).await?;
    for (reader, place) in [(8, None), (6, Some(ReadingStatus::Within(serde_json::json!({ "byte": 3 }))))] {
        let held = ports.begin_by(search, file, reader + 1).await?;
        ports.write.store(&held, vec![search::study(search, file, 1)], vec![]).await?;
        if let Some(place) = &place {
            ports.track.save(&held, place).await?;
        }
        let reading = ports.track.start(search, file, reader).await?;
        assert_eq!((reading.begun, reading.place, reading.fence), (0, None, held.fence + 1));
        assert_eq!(ports.read.studies(search, file, 0, 10).await?, []);
        overtaken(&ports.write.store(&held, vec![search::study(search, file, 2)], vec![]).await);
        assert_eq!(ports.track.start(search, file, reader).await?.begun, 1);
    }
    overtaken(&ports.write.store(&old, vec![search::study(search, file, 2)], vec![]).await);
    Ok(())
}

/// There are more records than a store removes at a time.
pub async fn many_records_are_discarded(ports: &Ports<'_>) -> CheckResult {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let studies: Vec<_> = (1..=2_100).map(|record| search::study(search, file, record)).collect();
    let unread: Vec<_> = (2_101..=3_200).map(|number| search::quarantined(search, file, number)).collect();
    let held = ports.begin(search, file).await?;
    ports.write.store(&held, studies, unread).await?;
    ports.write.discard(&held, None).await?;
    assert_eq!(ports.read.studies(search, file, 0, 10).await?, []);
    assert_eq!(ports.read.quarantined(search, file, 0, 10).await?, []);
    Ok(())
}
