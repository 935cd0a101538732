//! Every sample batch of the parse queue's dead-letter queue, fed to the library and to the built binary.

use events::Batches;
use functions::report_faults::ReportFaults;
use outbox::Queue;

const BATCHES: Batches = Batches {
    prefix: "sqs-faults",
    to: Queue::Saga,
    batches: &[("sqs-faults-mixed", &[1], &["StartParsingFaulted"])],
};

#[test]
fn every_sample_batch_is_here() {
    BATCHES.check_names();
}

#[tokio::test]
async fn the_library_answers_every_record_by_itself() {
    let answer = async |backend: &_, batch| {
        let function = ReportFaults::over(backend);
        let handle = async |batch: &[_]| function.handle(batch).await;
        let batch = serde_json::from_value(batch).unwrap();
        serde_json::to_value(lambda::answer(backend, Queue::ParseDead, batch, handle).await).unwrap()
    };
    BATCHES.feed_library(answer).await;
}

#[tokio::test]
async fn the_binary_answers_every_record_by_itself() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_report-faults")).await;
}
