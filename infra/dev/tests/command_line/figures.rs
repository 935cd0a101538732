//! The calculations of the benchmarks, and the files that they read and write.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use dev::bench::parse::files::KINDS;
use dev::bench::prices::Prices;
use dev::bench::{cold_start, duplicates, import, parse, quantile_ms};
use references::{Limits, Outcome, Reader};

#[test]
fn quantile_is_one_of_the_values() {
    let sorted: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
    assert_eq!([0.5, 0.99, 1.0].map(|share| quantile_ms(&sorted, share)), [50.0, 99.0, 100.0]);
    assert_eq!(quantile_ms(&sorted[..1], 0.99), 1.0);
    assert_eq!(quantile_ms(&[], 0.5), 0.0);
}

#[test]
fn median_is_the_middle_value() {
    assert_eq!(cold_start::median([3.0, 1.0, 2.0].into_iter()), 2.0);
    assert_eq!(cold_start::median([4.0, 1.0].into_iter()), 4.0);
    assert_eq!(cold_start::median(std::iter::empty()), 0.0);
}

#[test]
fn missing_function_is_named() {
    let error = cold_start::built("run-saga", Some(Path::new("nowhere"))).unwrap_err();
    assert!(error.to_string().contains("run-saga is not built"), "{error}");
}

#[test]
fn start_above_bound_does_not_hold() {
    let row = cold_start::Row {
        program: "f".into(),
        stores: "embedded",
        first_poll_ms: 20.1,
        first_answer_ms: 21.0,
        peak_mib: None,
        size_mib: None,
        bound_ms: Some(20.0),
    };
    assert!(!row.holds());
    assert!(cold_start::Row { first_poll_ms: 20.0, ..row.clone() }.holds());
    assert!(cold_start::Row { bound_ms: None, ..row }.holds());
}

#[tokio::test]
async fn every_duplicate_must_be_found_within_bound() {
    let report = duplicates::measure(&std::env::temp_dir(), 1_000).await.unwrap();
    assert_eq!(report.marked, 100);
    let report = duplicates::Report { added_mib: Some(60.0), ..report };
    assert!(report.holds());
    assert!(!duplicates::Report { marked: 99, ..report.clone() }.holds());
    assert!(!duplicates::Report { added_mib: Some(60.1), ..report }.holds());
}

#[test]
fn import_is_checked_against_its_bounds() {
    let row = import::Row {
        files: 1,
        records: 100,
        file_bytes: 1_000,
        uploaded_s: 1.0,
        stored_s: 2.0,
        listed_s: 3.0,
        marked_s: 4.0,
        stored_mib: Some(64.0),
        marked_mib: Some(100.0),
        object_bytes: 300,
        database_bytes: 1_000,
        log_bytes: 0,
    };
    assert!(row.holds());
    assert!((row.studies_per_second() - 50.0).abs() < 1e-9);
    assert!(!import::Row { database_bytes: 1_001, ..row.clone() }.holds());
    assert!(!import::Row { stored_mib: Some(64.1), ..row }.holds());
}

#[test]
fn every_record_has_its_own_text() {
    let mut file = Vec::new();
    assert_eq!(import::records::write(&mut file, 0..100).unwrap(), file.len() as u64);
    let mut reader = Reader::new(Limits::default()).with_threads(NonZeroUsize::MIN);
    let mut outcomes = reader.push(&file).unwrap();
    let (last, report) = reader.finish().unwrap();
    outcomes.extend(last);
    assert_eq!((report.records, report.quarantined), (100, 0));
    let texts = outcomes.iter().map(|outcome| match outcome {
        Outcome::Read(record) => record.reference.r#abstract.as_deref().unwrap().to_owned(),
        Outcome::Quarantined(record) => unreachable!("{record:?}"),
    });
    let texts: BTreeSet<_> = texts.collect();
    assert_eq!(texts.len(), 90, "each repeated record has the text of the previous one");
}

#[test]
fn chunk_size_changes_no_record() {
    for kind in KINDS {
        for piece in [1, 5_000, usize::MAX] {
            parse::read(kind.pieces(30, piece), 30, NonZeroUsize::MIN).unwrap();
        }
    }
}

#[test]
fn reading_is_checked_against_its_bounds() {
    let row = parse::Row {
        format: "ris",
        records: 1,
        megabytes: 1.0,
        megabytes_per_second: 100.0,
        records_per_second: 1.0,
        speedup: 1.0,
        ceiling: 1.0,
        bound: Some(100.0),
        growth: 1.15,
        peak_mib: Some(64.0),
    };
    assert!(row.holds());
    assert!(!parse::Row { megabytes_per_second: 99.0, ..row.clone() }.holds());
    assert!(!parse::Row { growth: 1.16, ..row.clone() }.holds());
    assert!(!parse::Row { peak_mib: Some(65.0), ..row }.holds());
}

#[test]
fn shipped_table_of_prices_is_readable() -> serde_json::Result<()> {
    Prices::shipped().map(|_| ())
}
