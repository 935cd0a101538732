//! Every sample batch of the parse queue, fed to the library and to the built binary.

use events::Batches;
use functions::parse_references::FUNCTION;

use crate::answer;

const BATCHES: Batches = Batches("sqs-parse");

#[tokio::test]
async fn the_library_answers_every_record_by_itself() {
    BATCHES.feed_library(async |backend: &_, batch| answer(&FUNCTION, backend, batch).await).await;
}

#[tokio::test]
async fn the_binary_answers_every_record_by_itself() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_parse-references")).await;
}
