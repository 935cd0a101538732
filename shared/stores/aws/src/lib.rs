//! The engine's ports on AWS, and the configuration that all AWS clients share.
//!
//! - [`ledger`]: partitions and processed messages on DynamoDB;
//! - [`queues`]: messages on SQS;
//! - [`config()`]: the configuration that every client of a program is built from, once, at its start;
//! - `trust`: which certificates a function trusts;
//! - [`failure`]: the errors of all clients as [`messages::StoreError`], with the setting to check.
//!
//! Addresses, region and credentials are where every AWS program has them: on Lambda in the environment that Lambda
//! sets up, elsewhere in `AWS_*` variables and profiles. `AWS_ENDPOINT_URL_DYNAMODB`, `_SQS` and `_S3` name other
//! endpoints (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html>).
//!
//! # Guarantees
//!
//! - A call that the SDK repeats after a timeout takes effect once: the ledger's conditional writes recognize their own
//!   earlier attempt, and a queue's messages have ids.
//! - A conflict is distinguished from a failure, and each error states whether a retry helps.
//! - No error or log contains a credential.
//!
//! # Example
//!
//! The ledger and the queues of an engine:
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use aws::ledger::Ledger;
//! use aws::queues::{Queues, Sqs, client};
//! use messages::{Host, Queue, QueueSpec};
//!
//! const MAIL: Queue = Queue::named("mail");
//! static QUEUES: [QueueSpec; 2] = [
//!     QueueSpec::standard(MAIL, Queue::named("mail-dead")),
//!     QueueSpec::without_consumer(Queue::named("mail-dead")),
//! ];
//!
//! # async fn open(host: Arc<dyn Host>) -> (Ledger, Sqs) {
//! let config = aws::config().await;
//! let ledger = Ledger::new(aws_sdk_dynamodb::Client::new(&config), "orders", "orders-ledger");
//! let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/mail".to_owned();
//! let sqs = Sqs::new(client(&config, Duration::from_secs(10)), Queues::of("orders", [(MAIL, url)]), &QUEUES, host);
//! (ledger, sqs)
//! # }
//! ```

pub mod failure;
pub mod ledger;
pub mod queues;
mod trust;

use std::time::Duration;

use aws_config::meta::region::ProvideRegion;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_types::retry::RetryConfig;

pub use failure::{Resource, failed};

/// The time limit for connecting.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for one attempt until its answer begins. The services answer within milliseconds; an attempt that
/// takes this long is lost.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(4);
/// The time limit for a call with all its attempts: less than the shortest timeout of a function, 20 s.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum number of attempts of a call. After that the message returns to its queue, which waits longer than a
/// function should.
pub const MAX_ATTEMPTS: u32 = 3;
/// The maximum delay before the first retry; the delay doubles with each retry.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The environment variable that names the region.
pub const REGION: &str = "AWS_REGION";

/// The configuration of all clients: from the environment, within the limits above.
pub async fn config() -> SdkConfig {
    let loader = aws_config::defaults(BehaviorVersion::latest());
    let loader = match trust::client() {
        Some(client) => loader.http_client(client),
        None => loader,
    };
    limited(loader).load().await
}

/// The region of all clients, as determined by [`config()`]: from the environment, from a profile, or from the metadata
/// of the machine, which only exist on AWS.
pub async fn region() -> Option<String> {
    let found = aws_config::default_provider::region::default_provider().region().await;
    found.map(|region| region.to_string())
}

/// The limits above, except for the maximum duration of a call with all its attempts.
pub fn timeouts(operation: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT.min(operation))
        .operation_attempt_timeout(ATTEMPT_TIMEOUT.min(operation))
        .operation_timeout(operation)
        .build()
}

/// The limits above, on a configuration that is being built otherwise.
pub fn limited(loader: aws_config::ConfigLoader) -> aws_config::ConfigLoader {
    let retries = RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(FIRST_BACKOFF)
        .with_max_backoff(MAX_BACKOFF);
    loader.timeout_config(timeouts(OPERATION_TIMEOUT)).retry_config(retries)
}
