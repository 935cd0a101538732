//! Sample batches of the parse queue, fed to the library and to the built binary.

use std::time::Duration;

use events::Batches;
use functions::parse_references::{FUNCTION, MAX_READ_BATCH, next_batch_size};
use imports::Settings;
use jiff::SignedDuration;
use references::work;

use crate::answer;

const BATCHES: Batches = Batches("sqs-parse");
/// The timeout of the function in `template.yaml`.
const INVOCATION: Duration = Duration::from_secs(900);
/// Far more than the time of a unit of work, which is a few nanoseconds.
const UNIT: Duration = Duration::from_nanos(100);

#[tokio::test]
async fn library_answers_each_record() {
    BATCHES.feed_library(async |backend: &_, batch| answer(&FUNCTION, backend, batch).await).await;
}

#[tokio::test]
async fn binary_answers_each_record() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_parse-references")).await;
}

/// An attempt always reads its first record to the end, so the largest record has to fit into an invocation.
#[test]
fn first_record_fits_into_an_invocation() {
    let units = work::budget(Settings::default().max_record_bytes);
    let longest = UNIT * u32::try_from(units).unwrap();
    assert!(longest < INVOCATION / 10, "{longest:?}");
}

#[test]
fn slow_records_shrink_the_read_batch() {
    let paces = [0, 500, 501, 501, 100, 9_000, 9_000, 9_000, 9_000].map(SignedDuration::from_millis);
    let read = paces.into_iter().scan(MAX_READ_BATCH, |read_batch, took| {
        *read_batch = next_batch_size(*read_batch, took);
        Some(*read_batch)
    });
    assert_eq!(read.collect::<Vec<_>>(), [1_024, 1_024, 256, 64, 128, 32, 8, 2, 1]);
}
