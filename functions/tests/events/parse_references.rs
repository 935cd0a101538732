//! Every sample batch of the parse queue, fed to the library and to the built binary.

use events::Batches;
use functions::parse_references::FUNCTION;
use imports::queues;

use crate::answer;

const BATCHES: Batches = Batches {
    prefix: "sqs-parse",
    to: queues::SAGA,
    batches: &[
        ("sqs-parse-good", &[], &["ReferenceFileParsingCompleted"]),
        ("sqs-parse-hostile", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[]),
        ("sqs-parse-mixed", &[1, 2], &["ReferenceFileParsingCompleted"]),
    ],
};

#[test]
fn every_sample_batch_is_here() {
    BATCHES.check_names();
}

#[tokio::test]
async fn the_library_answers_every_record_by_itself() {
    BATCHES.feed_library(async |backend: &_, batch| answer(&FUNCTION, backend, batch).await).await;
}

#[tokio::test]
async fn the_binary_answers_every_record_by_itself() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_parse-references")).await;
}
