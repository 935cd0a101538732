//! Sample batches of the parse queue, fed to the library and to the built binary.

use events::Batches;
use functions::parse_references::FUNCTION;

use crate::answer;

const BATCHES: Batches = Batches("sqs-parse");

#[tokio::test]
async fn library_answers_each_record() {
    BATCHES.feed_library(async |backend: &_, batch| answer(&FUNCTION, backend, batch).await).await;
}

#[tokio::test]
async fn binary_answers_each_record() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_parse-references")).await;
}
