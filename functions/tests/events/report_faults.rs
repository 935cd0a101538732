//! Sample batches of the parse queue's dead-letter queue, fed to the library and to the built binary.

use events::Batches;
use functions::report_faults::FUNCTION;

use crate::answer;

const BATCHES: Batches = Batches("sqs-faults");

#[tokio::test]
async fn library_answers_each_record() {
    BATCHES.feed_library(async |backend: &_, batch| answer(&FUNCTION, backend, batch).await).await;
}

#[tokio::test]
async fn binary_answers_each_record() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_report-faults")).await;
}
