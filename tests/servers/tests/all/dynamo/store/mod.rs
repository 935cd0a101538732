//! The store of documents, outboxes, sessions, records, views, failures and history.

mod application;
mod calls;
mod faults;
mod history;
mod orders;
mod suites;

use std::sync::Arc;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::{RetryPartition, TokenBucket};
use backend::SystemHost;
use dynamo::{Dynamo, Settings};
use servers::amazon::{Service, config, config_at};
use servers::{TestResult, cleaned_up, unique};

fn store(client: Client, table: &str) -> Dynamo {
    let settings = Settings { table: table.to_owned(), ..Settings::new("samples") };
    Dynamo::new(client, settings, Arc::new(SystemHost))
}

/// Runs a test with its own table.
async fn with_store<F: Future<Output = TestResult>>(test: impl FnOnce(Dynamo) -> F) -> TestResult {
    with_store_of(|config| config, test).await
}

/// Works like [`with_store`], with a changed client.
async fn with_store_of<F: Future<Output = TestResult>>(
    change: impl FnOnce(Builder) -> Builder,
    test: impl FnOnce(Dynamo) -> F,
) -> TestResult {
    let config = config(Service::DynamoDb).await;
    let table = unique("store");
    let plain = store(Client::new(&config), &table);
    plain.create_table().await?;
    plain.check_table().await?;
    let clean = async { plain.delete_table().await.expect("the table can be deleted") };
    let client = Client::from_conf(change(Builder::from(&config)).build());
    cleaned_up(test(store(client, &table)), clean).await
}

/// Returns a client of a server with injected faults. It repeats calls almost immediately, without the client's limit of
/// repetitions per minute.
async fn impatient(address: &str) -> Client {
    let retries = RetryConfig::standard()
        .with_max_attempts(aws::MAX_ATTEMPTS)
        .with_initial_backoff(Duration::from_millis(1))
        .with_max_backoff(Duration::from_millis(5));
    let partition = RetryPartition::custom("faults").token_bucket(TokenBucket::unlimited()).build();
    let config = Builder::from(&config_at(address).await).retry_config(retries).retry_partition(partition);
    Client::from_conf(config.build())
}
