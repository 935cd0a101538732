//! Sample batches of the saga queue, fed to the library and to the built binary.

use events::Batches;
use functions::run_saga::FUNCTION;
use imports::queues::QUEUES;
use lambda_host::{Function, Outcome};
use tokio::process::Command;

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

/// The settings of a function whose services are nowhere.
fn settings_of_nowhere(database: &str) -> Vec<(String, String)> {
    // A port that nothing listens on any more.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let queues = FUNCTION.queues(&QUEUES);
    let queues = queues.iter().map(|queue| (backend::queue_setting(queue), format!("http://{address}/q")));
    let others = [
        ("SEARCH_IMPORT_BACKEND", "aws".to_owned()),
        ("MONGODB_URI", database.replace("NOWHERE", &address.to_string())),
        ("MONGODB_DATABASE", "reviews".to_owned()),
        ("SEARCH_IMPORT_LEDGER_TABLE", "ledger".to_owned()),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "none".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "none".to_owned()),
        ("AWS_MAX_ATTEMPTS", "1".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
    ];
    queues.chain(others.map(|(name, value)| (name.to_owned(), value))).collect()
}

async fn started(database: &str) -> Function {
    let mut command = Command::new(env!("CARGO_BIN_EXE_run-saga"));
    command.env_clear().envs(settings_of_nowhere(database));
    Function::start(command).await.unwrap()
}

/// A function that ends instead answers nothing, and each delivery costs a visibility timeout.
#[tokio::test]
async fn binary_without_database_fails_each_record() {
    let mut function = started("mongodb://NOWHERE/?replicaSet=rs0&serverSelectionTimeoutMS=200").await;
    let event = events::event("sqs-saga-good");
    for _ in 0..2 {
        let Outcome::Answer(answer) = function.invoke(&event).await.unwrap() else { panic!("it failed") };
        let response = serde_json::from_slice(&answer).unwrap();
        let all: Vec<usize> = (0..event["Records"].as_array().unwrap().len()).collect();
        assert_eq!(events::failures(&event, &response), all);
    }
    let log = function.stop().await;
    assert!(log.iter().any(|line| line.contains("the database is unavailable")), "{log:#?}");
}

#[tokio::test]
async fn binary_with_malformed_address_exits() {
    let refused = started("postgres://NOWHERE").await.polled().await;
    assert!(matches!(&refused, Err(error) if error.to_string().contains("MONGODB_URI")), "{refused:?}");
}
