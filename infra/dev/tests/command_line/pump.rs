//! `pump` without an environment. Deliveries are tested with the queues.

use crate::program::Program;

#[test]
fn pump_without_queues_names_missing_setting() {
    let run = Program::new().run(&["pump"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("SEARCH_IMPORT_SAGA_QUEUE_URL is not set"), "{}", run.stderr);
}
