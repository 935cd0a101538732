//! The keys of a large file: all are inserted, and unshared ones are omitted. The compared fields of long studies.

use contracts::sample;
use imports::{FileFence, FileRef, Identity, ParseAttempts, ReadStudies, Study, WriteStudies};
use messages::StoreError;
use references::{READER_VERSION, Reference};
use testing::search;

use crate::depot::{Depot, TestResult};

/// A file whose studies have these DOIs, and nothing else.
async fn stored(depot: &Depot, dois: &[&str]) -> Result<FileRef, StoreError> {
    let (search_id, file_id) = (sample::partition(&*depot.host), search::file(&*depot.host));
    let fence = depot.store.start(search_id, file_id, READER_VERSION).await?.fence;
    let studies = (1..).zip(dois).map(|(record, doi)| {
        let reference = Reference { doi: Some(format!("10.1000/{doi}")), ..Reference::default() };
        Study { reference, ..search::study(search_id, file_id, record) }
    });
    depot.store.store(&FileFence { search_id, file_id, fence }, studies.collect(), vec![]).await?;
    Ok(FileRef { search_id, file_id })
}

#[tokio::test]
async fn unshared_keys_are_omitted_from_full_pages() -> TestResult {
    let depot = Depot::new();
    let FileRef { search_id: search, file_id: file } = stored(&depot, &["a", "b", "a", "c"]).await?;
    let keys = async |after, limit| {
        let page = depot.store.keyed(search, file, after, limit).await?;
        let count = |keys: Option<Vec<u64>>| keys.map(|keys| keys.len());
        Ok::<_, StoreError>(page.into_iter().map(|study| count(study.keys)).collect::<Vec<_>>())
    };
    let (all, shared) = ([Some(1); 4], [Some(1), Some(0), Some(1), Some(0)]);
    // The file may still receive other keys.
    assert_eq!(keys(0, 4).await?, all);
    depot.store.finish(&search::parsed(search, file, 0)).await?;
    assert_eq!(keys(0, 4).await?, shared);
    assert_eq!(keys(2, 1).await?, shared[2..3]);
    // A worker that resumes the file lists it again, which changes nothing.
    depot.store.finish(&search::parsed(search, file, 0)).await?;
    // The filter for the file is dropped at its end.
    assert_eq!(keys(2, 9).await?, shared[2..]);
    // Without a filter, all keys of a small page are returned.
    assert_eq!(keys(2, 9).await?, all[2..]);
    // The filter is valid for the files that were listed at its creation. It is outdated when another file is listed.
    let FileRef { search_id: other_search, file_id: other } = stored(&depot, &["c", "d"]).await?;
    depot.store.finish(&search::parsed(other_search, other, 0)).await?;
    assert_eq!(keys(0, 4).await?, [Some(1), Some(0), Some(1), Some(1)]);
    let of_other = depot.store.keyed(other_search, other, 0, 9).await?;
    assert_eq!(of_other.into_iter().map(|study| study.keys.unwrap().len()).collect::<Vec<_>>(), [1, 0]);
    let FileRef { search_id: late_search, file_id: late } = stored(&depot, &["b"]).await?;
    assert_eq!(keys(1, 1).await?, [Some(0)]);
    let of_late = depot.store.keyed(late_search, late, 0, 1).await?;
    assert_eq!(of_late[0].keys.as_ref().map(Vec::len), Some(1), "another has it");
    depot.store.finish(&search::parsed(late_search, late, 0)).await?;
    assert_eq!(keys(1, 1).await?, [Some(1)]);
    Ok(())
}

/// The shared keys of a large file are found when it is listed.
#[tokio::test]
async fn unshared_keys_of_large_file_are_omitted() -> TestResult {
    const STUDIES: usize = 2_500;
    let depot = Depot::new();
    let file_with = async |name: &str, shared: &[&str]| {
        let own: Vec<_> =
            (shared.len()..).map(|n| format!("{name}{n}")).take(STUDIES - shared.len()).collect();
        let dois: Vec<&str> = shared.iter().copied().chain(own.iter().map(String::as_str)).collect();
        let file = stored(&depot, &dois).await?;
        depot.store.finish(&search::parsed(file.search_id, file.file_id, 0)).await?;
        Ok::<_, StoreError>(file)
    };
    // All studies at once: without a filter, all keys of such a page are returned.
    let shared = async |file: FileRef| {
        let studies = depot.store.keyed(file.search_id, file.file_id, 0, 9_999).await?;
        assert_eq!(studies.len(), STUDIES);
        let shared = studies.into_iter().filter(|study| study.keys.as_ref().unwrap().len() == 1);
        Ok::<_, StoreError>(shared.map(|study| study.record).collect::<Vec<_>>())
    };
    let first = file_with("a", &["x", "y", "x", "z"]).await?;
    assert_eq!(shared(first).await?, [1, 3]);
    let second = file_with("b", &["z", "v", "v"]).await?;
    // The filter is valid for its file alone.
    assert_eq!(shared(first).await?, (1..=STUDIES as u64).collect::<Vec<_>>());
    let keys = depot.store.keyed(first.search_id, first.file_id, 0, 3).await?;
    assert_eq!(shared(second).await?, [1, 2, 3]);
    assert_eq!(keys.iter().map(|study| study.keys.as_ref().unwrap().len()).collect::<Vec<_>>(), [1, 0, 1]);
    Ok(())
}

/// The keys are sorted in several parts and inserted in several transactions.
#[tokio::test]
async fn all_keys_of_large_file_are_inserted_once() -> TestResult {
    const STUDIES: u32 = 120_000;
    let depot = Depot::new();
    let dois: Vec<String> = (0..STUDIES).map(|n| format!("{}", n % (STUDIES - 1))).collect();
    let dois: Vec<&str> = dois.iter().map(String::as_str).collect();
    let FileRef { search_id: search, file_id: file } = stored(&depot, &dois).await?;
    let count = |what: &str| {
        let sql = format!("SELECT {what} FROM study_key");
        depot.database().query_row(&sql, [], |row| row.get::<_, u32>(0))
    };
    depot.store.finish(&search::parsed(search, file, 0)).await?;
    assert_eq!((count("count(*)")?, count("count(DISTINCT key)")?), (STUDIES, STUDIES - 1));
    assert_eq!(count("count(DISTINCT record)")?, STUDIES);
    assert_eq!(depot.store.parsed(search).await?.len(), 1);
    let left = std::fs::read_dir(depot.folder.path().join("objects"))?;
    assert_eq!(left.count(), 0, "temporary files are removed");
    Ok(())
}

/// A page of compared fields is read in several parts if its texts are long.
#[tokio::test]
async fn identities_of_long_studies_are_complete() -> TestResult {
    let depot = Depot::new();
    let (search_id, file_id) = (sample::partition(&*depot.host), search::file(&*depot.host));
    let fence = depot.store.start(search_id, file_id, READER_VERSION).await?.fence;
    let mut digit = 1_u64;
    let studies: Vec<Study> = (1..=7)
        .map(|record| {
            let noise = std::iter::repeat_with(|| {
                digit = digit.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                format!("{digit:x}")
            });
            let reference = Reference {
                title: format!("Study {record}"),
                r#abstract: Some(noise.take(50_000).collect()),
                ..Reference::default()
            };
            Study { reference, ..search::study(search_id, file_id, record) }
        })
        .collect();
    let expected: Vec<_> = studies.iter().map(|study| Identity::of(study.record, &study.reference)).collect();
    depot.store.store(&FileFence { search_id, file_id, fence }, studies, vec![]).await?;
    let records = [1, 2, 3, 4, 5, 6, 7, 8];
    let found = depot.store.identities_of(search_id, file_id, &records).await?;
    assert!(found == expected);
    Ok(())
}
