//! Sample batches of the saga queue, fed to the library and to the built binary.

use events::Batches;
use functions::run_saga::FUNCTION;

use crate::answer;

const BATCHES: Batches = Batches("sqs-saga");

#[tokio::test]
async fn library_answers_each_record() {
    BATCHES.feed_library(async |backend: &_, batch| answer(&FUNCTION, backend, batch).await).await;
}

#[tokio::test]
async fn binary_answers_each_record() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_run-saga")).await;
}
