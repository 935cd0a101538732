//! The disk space of records is bounded by their text, however short it is.

use contracts::sample;
use imports::{
    CompareStudies, Duplicate, FileFence, FileId, Mark, ParseAttempts, QuarantinedRecord, Reason, SearchId,
    Study, StudyRef, Tier, WriteStudies,
};
use references::{Quarantine, READER_VERSION, Reference};
use testing::search;

use crate::depot::{Depot, TestResult};

/// The maximum disk space of a row of two bytes: a letter and a line end.
const MAX_ROW_BYTES: u64 = 120;
/// The limit for a record that is marked as a duplicate.
const MAX_DUPLICATE_BYTES: u64 = 160;
/// The number of stored records, and the number per call.
const RECORDS: u64 = 50_000;
const BATCH: usize = 1_000;

/// Returns the size of the database minus the size of an empty one.
struct UsedSpace(u64);

impl UsedSpace {
    fn of(depot: &Depot) -> rusqlite::Result<u64> {
        let number = |name: &str| depot.database().pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        Ok(u64::from(number("page_count")?) * u64::from(number("page_size")?))
    }

    fn before(depot: &Depot) -> rusqlite::Result<Self> {
        Ok(Self(Self::of(depot)?))
    }

    /// Returns the additional disk space per record since this measurement.
    fn since(&self, depot: &Depot) -> rusqlite::Result<u64> {
        Ok((Self::of(depot)? - self.0) / RECORDS)
    }
}

async fn begun(
    depot: &Depot,
    search_id: SearchId,
    file_id: FileId,
) -> Result<FileFence, messages::StoreError> {
    let fence = depot.store.start(search_id, file_id, READER_VERSION).await?.fence;
    Ok(FileFence { search_id, file_id, fence })
}

#[tokio::test]
async fn two_byte_record_takes_bounded_space() -> TestResult {
    let depot = Depot::new();
    let (search, file) = (sample::partition(&*depot.host), search::file(&*depot.host));
    let held = begun(&depot, search, file).await?;
    let before = UsedSpace::before(&depot)?;
    let studies: Vec<Study> = (1..=RECORDS)
        .map(|record| Study {
            line: record + 1,
            reference: Reference { pmid: Some("1".into()), ..Reference::default() },
            ..search::study(search, file, record)
        })
        .collect();
    for batch in studies.chunks(BATCH) {
        depot.store.store(&held, batch.to_vec(), vec![]).await?;
    }
    depot.store.finish(&search::parsed(search, file, 0)).await?;
    let plain = before.since(&depot)?;
    assert!(plain <= MAX_ROW_BYTES, "{plain} bytes for each record");
    let (tier, reason) = (Tier::Certain, Reason::TitleYearAuthor);
    let duplicate = Duplicate { search_id: search, file_id: file, position: 0, record: 1, tier, reason };
    let at = |study: &Study| StudyRef { search_id: search, file_id: file, record: study.record };
    let mark = |study: &Study| Mark { at: at(study), duplicate: Some(duplicate) };
    for batch in studies[1..].chunks(BATCH) {
        depot.store.mark(1, &batch.iter().map(mark).collect::<Vec<_>>()).await?;
    }
    let marked = before.since(&depot)?;
    assert!(marked <= MAX_DUPLICATE_BYTES, "{marked} bytes for each duplicate");
    Ok(())
}

/// The text of a record is nearly its whole size.
#[tokio::test]
async fn unreadable_record_takes_bounded_space() -> TestResult {
    let depot = Depot::new();
    let (search_id, file_id) = (sample::partition(&*depot.host), search::file(&*depot.host));
    let held = begun(&depot, search_id, file_id).await?;
    let before = UsedSpace::before(&depot)?;
    let record = |number| Quarantine {
        number,
        line: number,
        bytes: number * 3..number * 3 + 2,
        reason: "x".repeat(70),
        excerpt: "x,".into(),
    };
    let quarantined =
        (1..=RECORDS).map(|number| QuarantinedRecord { search_id, file_id, record: record(number) });
    for batch in quarantined.collect::<Vec<_>>().chunks(BATCH) {
        depot.store.store(&held, vec![], batch.to_vec()).await?;
    }
    let each = before.since(&depot)?;
    assert!(each <= 250, "{each} bytes for each record");
    Ok(())
}

/// Each transaction removes only a part, so that others can write in between.
#[tokio::test]
async fn large_file_is_discarded_completely() -> TestResult {
    let depot = Depot::new();
    let (search, file) = (sample::partition(&*depot.host), search::file(&*depot.host));
    let held = begun(&depot, search, file).await?;
    let studies: Vec<Study> = (1..=RECORDS / 2).map(|record| search::study(search, file, record)).collect();
    for batch in studies.chunks(BATCH) {
        depot.store.store(&held, batch.to_vec(), vec![]).await?;
    }
    let later = depot.store.discard(&held, None).await?;
    let left: u32 = depot.database().query_row("SELECT count(*) FROM study", [], |row| row.get(0))?;
    assert_eq!((left, later.fence), (0, held.fence + 1));
    assert!(
        depot.store.store(&held, studies[..1].to_vec(), vec![]).await.is_err(),
        "a superseded attempt stores nothing"
    );
    depot.store.store(&later, studies[..1].to_vec(), vec![]).await?;
    Ok(())
}
