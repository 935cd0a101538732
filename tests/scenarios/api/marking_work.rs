//! The work of marking duplicates: studies that are read, and marks that are stored.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use embedded::Store;
use imports::words::{BucketRange, WordPart};
use imports::{
    Candidate, CompareStudies, DuplicateCounts, FileId, FileRef, Identity, Mark, ParsedFile, ProjectId,
    QuarantinedRecord, ReadStudies, Revision, SearchId, Selection, StoredFile, Study, StudyKeys, StudyRef,
    Tier,
};
use messages::StoreError;
use service::marking::DuplicateMarking;
use uuid::Uuid;

use super::duplicates::search;
use crate::world::World;

/// A store that counts the studies that are read, looked up and marked.
struct Counting {
    store: Arc<Store>,
    read: AtomicUsize,
    looked_up: AtomicUsize,
    marked: AtomicUsize,
    /// A search whose files are not listed yet.
    hidden: Option<SearchId>,
    /// The marks of a slow worker, which are not stored yet.
    delayed: Option<Mutex<Vec<(Revision, Mark)>>>,
}

impl Counting {
    fn new(store: &Arc<Store>) -> Self {
        let (read, looked_up, marked) = Default::default();
        Self { store: Arc::clone(store), read, looked_up, marked, hidden: None, delayed: None }
    }

    fn marking(counting: &Arc<Self>) -> DuplicateMarking {
        let store = Arc::clone(&counting.store);
        DuplicateMarking { stored: counting.clone(), compare: counting.clone(), records: store }
    }
}

#[async_trait]
impl ReadStudies for Counting {
    async fn select(&self, s: SearchId, f: FileId, of: Selection) -> Result<Vec<Study>, StoreError> {
        self.store.select(s, f, of).await
    }

    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<QuarantinedRecord>, StoreError> {
        self.store.quarantined(search, file, after, limit).await
    }

    async fn keyed(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StudyKeys>, StoreError> {
        self.store.keyed(search, file, after, limit).await
    }

    async fn identities_of(&self, s: SearchId, f: FileId, of: &[u64]) -> Result<Vec<Identity>, StoreError> {
        self.read.fetch_add(of.len(), Ordering::SeqCst);
        self.store.identities_of(s, f, of).await
    }

    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError> {
        if self.hidden == Some(search) {
            return Ok(Vec::new());
        }
        self.store.parsed(search).await
    }

    async fn stored_files(
        &self,
        after: Option<FileRef>,
        limit: usize,
    ) -> Result<Vec<StoredFile>, StoreError> {
        self.store.stored_files(after, limit).await
    }

    async fn marked(&self, search: SearchId, file: FileId) -> Result<DuplicateCounts, StoreError> {
        self.store.marked(search, file).await
    }

    async fn studies_at(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        bytes: usize,
    ) -> Result<Vec<Study>, StoreError> {
        self.store.studies_at(search, file, records, bytes).await
    }

    async fn repeating(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        limit: usize,
    ) -> Result<Vec<(u64, StudyRef)>, StoreError> {
        self.store.repeating(search, file, records, limit).await
    }

    async fn words(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        buckets: &[BucketRange],
    ) -> Result<Option<WordPart>, StoreError> {
        self.store.words(search, file, after, buckets).await
    }
}

#[async_trait]
impl CompareStudies for Counting {
    async fn revise(&self, project: ProjectId) -> Result<Revision, StoreError> {
        self.store.revise(project).await
    }

    async fn sharing(&self, p: ProjectId, keys: &[u64], limit: usize) -> Result<Vec<Candidate>, StoreError> {
        let found = self.store.sharing(p, keys, limit).await?;
        self.looked_up.fetch_add(found.len(), Ordering::SeqCst);
        Ok(found)
    }

    async fn mark(&self, revision: Revision, marks: &[Mark]) -> Result<(), StoreError> {
        self.marked.fetch_add(marks.len(), Ordering::SeqCst);
        if let Some(delayed) = &self.delayed {
            delayed.lock().unwrap().extend(marks.iter().map(|mark| (revision, *mark)));
            return Ok(());
        }
        self.store.mark(revision, marks).await
    }
}

/// The work of marking a file, and the marks: the record of each duplicate and of its original.
#[derive(Debug)]
struct Work {
    read: usize,
    looked_up: usize,
    marked: usize,
    marks: Vec<(u64, u64)>,
}

/// Imports a file, marks it again, and counts the work of that.
async fn work_of(content: &str) -> Work {
    let world = World::new();
    let search_id = search(&world, "a.ris", content).await;
    let store = Arc::new(world.store().clone());
    let file_id = store.parsed(search_id).await.unwrap()[0].file_id;
    let counting = Arc::new(Counting::new(&store));
    let marking = Counting::marking(&counting);
    let file = FileRef { search_id, file_id };
    let project = ProjectId::from_uuid(Uuid::nil());
    assert_eq!(marking.file_added(project, file, 0, || false).await.unwrap(), None);
    let all = Selection { marked: Some(Tier::Possible), after: 0, limit: usize::MAX >> 1, bytes: usize::MAX };
    let studies = store.select(search_id, file_id, all).await.unwrap();
    let marks = studies.iter().map(|study| (study.record, study.duplicate.unwrap().record)).collect();
    let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    Work {
        read: count(&counting.read),
        looked_up: count(&counting.looked_up),
        marked: count(&counting.marked),
        marks,
    }
}

/// A word that is unlike those of other numbers and positions.
fn word(n: usize, position: usize) -> String {
    let mixed = ((n * 8 + position + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..9).map(|letter| char::from(b'a' + (mixed >> (60 - 4 * letter) & 15) as u8)).collect()
}

/// A record of a separate work, which shares only volume, page and year with every other work at the same place.
fn record(n: usize, place: usize) -> String {
    let title = (0..6).map(|position| word(n, position)).collect::<Vec<_>>().join(" ");
    format!(
        "TY  - JOUR\nTI  - {title}\nAU  - {}, A.\nPY  - 2001\nJO  - {}\nVL  - 7\nSP  - {}\nER  - \n\n",
        word(n, 6),
        word(n, 7),
        100 + place
    )
}

#[tokio::test]
async fn each_group_is_read_and_marked_once() {
    // Copies are in other chunks than their originals, and in other pages; 500 studies are a full page.
    for count in [300_usize, 500] {
        let works = (0..2 * count).map(|n| record(n % count, n % count));
        let work = work_of(&works.collect::<String>()).await;
        let last = count as u64;
        assert_eq!(work.marks, Vec::from_iter((1..=last).map(|n| (last + n, n))));
        assert_eq!((work.read, work.marked), (2 * count, count), "{work:?}");
    }
}

#[tokio::test]
async fn unrelated_studies_sharing_key_are_compared_once() {
    // Ten works share each place, and none of them is like another.
    let works = (0..400).map(|n| record(n, n % 40));
    let work = work_of(&works.collect::<String>()).await;
    assert_eq!(work.marks, []);
    // The first chunk reads its 250 studies and the 150 behind them, the second chunk its 150.
    assert_eq!((work.read, work.marked), (550, 0), "{work:?}");
}

#[tokio::test]
async fn copies_beyond_key_limit_take_bounded_work() {
    const COPIES: usize = 1_200;
    let work = work_of(&record(7, 7).repeat(COPIES)).await;
    assert_eq!(work.marks, Vec::from_iter((2..=COPIES as u64).map(|n| (n, 1))));
    // Each chunk of 250 reads its own studies and the first fifty, and looks up some ten keys.
    assert!(work.read <= COPIES + 5 * 50, "{}", work.read);
    assert!(work.looked_up <= 5 * 50 * 12, "{}", work.looked_up);
    assert!(work.marked < 2 * COPIES, "{}", work.marked);
}

/// All works share a place, more than a lookup returns: each study is compared with the first fifty of them.
#[tokio::test]
async fn unrelated_studies_beyond_key_limit_take_bounded_work() {
    const WORKS: usize = 600;
    let works = (0..WORKS).map(|n| record(n, 0)).chain([record(30, 0), record(40, 0)]);
    let work = work_of(&works.collect::<String>()).await;
    assert_eq!(work.marks, [(601, 31), (602, 41)]);
    assert!(work.read <= WORKS + 2 + 4 * 60, "{}", work.read);
}

/// A batch with many candidates takes long, so the deadline is also checked between two comparisons.
#[tokio::test]
async fn deadline_interrupts_a_batch_of_comparisons() {
    // Copies are in other batches than their originals, and ten works share each place.
    let works = (0..600).map(|n| record(n % 300, n % 30)).collect::<String>();
    let world = World::new();
    let search_id = search(&world, "a.ris", &works).await;
    let store = Arc::new(world.store().clone());
    let file = FileRef::new(search_id, store.parsed(search_id).await.unwrap()[0].file_id);
    let marking = DuplicateMarking { stored: store.clone(), compare: store.clone(), records: store.clone() };
    let project = ProjectId::from_uuid(Uuid::nil());
    let (mut after, mut calls) = (Some(0), Vec::new());
    while let Some(from) = after {
        let checks = AtomicUsize::new(0);
        let has_passed = || checks.fetch_add(1, Ordering::SeqCst) >= 20;
        after = marking.file_added(project, file, from, has_passed).await.unwrap();
        calls.push((from, checks.into_inner()));
    }
    assert!(calls.len() > 1 && calls.is_sorted_by(|a, b| a < b), "{calls:?}");
    assert!(calls.iter().all(|(_, checks)| *checks <= 22), "{calls:?}");
    let all = Selection { marked: Some(Tier::Possible), after: 0, limit: usize::MAX >> 1, bytes: usize::MAX };
    let studies = store.select(search_id, file.file_id, all).await.unwrap();
    let marks = studies.iter().map(|study| (study.record, study.duplicate.unwrap().record));
    assert!(marks.eq((1..=300).map(|n| (300 + n, n))));
}

/// Without the third record, the second one is likely a duplicate of the first one. With the third record, the second
/// one is kept. The second record matches the third, whose PubMed number differs from that of the first record.
#[tokio::test]
async fn late_mark_does_not_override_newer_file() {
    let world = World::new();
    let record = |numbers: &str| {
        format!(
            "TY  - JOUR\nTI  - Effects of walking on sleep in older adults with pain\nAU  - Berg, A.\n\
             PY  - 2001\n{numbers}ER  - \n"
        )
    };
    search(&world, "first.ris", &record("AN  - PMID:11111111\n")).await;
    let second = search(&world, "second.ris", &record("DO  - 10.1016/j.sleep.2001.01.007\n")).await;
    let third =
        search(&world, "third.ris", &record("DO  - 10.1016/j.sleep.2001.01.007\nAN  - PMID:22222222\n"))
            .await;
    let store = Arc::new(world.store().clone());
    let project = ProjectId::from_uuid(Uuid::nil());
    let file = async |search| FileRef::new(search, store.parsed(search).await.unwrap()[0].file_id);
    let (second, third) = (file(second).await, file(third).await);
    let mark_of = async |file: FileRef| {
        let all = Selection { marked: None, after: 0, limit: 2, bytes: usize::MAX };
        let studies = store.select(file.search_id, file.file_id, all).await.unwrap();
        studies[0].duplicate.map(|mark| mark.of().file())
    };
    let at = StudyRef { search_id: second.search_id, file_id: second.file_id, record: 1 };
    store.mark(store.revise(project).await.unwrap(), &[Mark { at, duplicate: None }]).await.unwrap();

    let slow = Counting { hidden: Some(third.search_id), ..Counting::new(&store) };
    let slow = Arc::new(Counting { delayed: Some(Mutex::default()), ..slow });
    assert_eq!(Counting::marking(&slow).file_added(project, second, 0, || false).await.unwrap(), None);
    let fast = Arc::new(Counting::new(&store));
    assert_eq!(Counting::marking(&fast).file_added(project, third, 0, || false).await.unwrap(), None);
    let delayed = slow.delayed.as_ref().unwrap().lock().unwrap().clone();
    assert!(matches!(delayed[..], [(_, Mark { duplicate: Some(_), .. })]), "{delayed:?}");
    for (revision, mark) in delayed {
        store.mark(revision, &[mark]).await.unwrap();
    }

    assert_eq!([mark_of(second).await, mark_of(third).await], [None, Some(second)]);
}
