//! Runs every example as a user does. Each example ends with an error if its guarantee does not hold.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::path::PathBuf;
use std::process::Command;

/// Returns the program of an example, which Cargo builds together with the tests.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
}

fn output(name: &str) -> String {
    let output = Command::new(example(name)).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn saga_ends_paid_despite_duplicates() {
    assert!(output("saga").starts_with("the invoice ended: "));
}

#[test]
fn deposits_change_the_balance_once() {
    assert_eq!(output("deduplication"), "nine deliveries of three deposits: 123 cents\n");
}

#[test]
fn commands_reach_the_provider_under_one_key() {
    assert_eq!(output("handler"), "six deliveries of two commands: 2 charges\n");
}

#[test]
fn rows_and_messages_are_committed_together() {
    assert_eq!(output("session"), "2 seats are booked, and 2 mails are queued\n");
}

/// The documents are on the server at `MONGODB_URI`.
#[test]
fn documents_and_messages_are_committed_together() {
    assert!(
        std::env::var("MONGODB_URI").is_ok(),
        "MONGODB_URI is not set: run `make services` or `make test`"
    );
    assert_eq!(output("session_mongo"), "2 seats are booked, and 2 mails are queued\n");
}

/// The table is on the server at `AWS_ENDPOINT_URL_DYNAMODB`.
#[test]
fn documents_on_dynamodb_change_once() {
    assert!(
        std::env::var("AWS_ENDPOINT_URL_DYNAMODB").is_ok(),
        "AWS_ENDPOINT_URL_DYNAMODB is not set: run `make services` or `make test`"
    );
    assert_eq!(output("dynamo"), "seat 17 was paid once\n");
}

#[test]
fn large_text_is_read_from_the_object_store() {
    assert_eq!(output("claim_check"), "800000 words in an object of 4 MB\n");
}

#[test]
fn encrypted_number_is_in_no_stored_file() {
    assert_eq!(output("encryption"), "the program reads the number, and no stored file contains it\n");
}

#[test]
fn announcement_is_sent_after_the_outage() {
    assert!(output("outbox").starts_with("the announcement was sent by sweep"));
}

#[test]
fn refused_hotel_releases_the_flight() {
    assert_eq!(output("steps"), "Lisbon is completed, Atlantis is undone, and 2 reservations remain\n");
}

#[test]
fn two_sagas_deliver_the_order() {
    assert_eq!(output("two_sagas"), "the order was delivered after two parcels\n");
}

#[test]
fn examples_have_fewer_than_100_lines() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        // An example of two sagas defines the messages and the states of both.
        let limit = if path.ends_with("two_sagas.rs") { 140 } else { 100 };
        assert!(lines < limit, "{} has {lines} lines", path.display());
    }
}
