//! Faults and their error messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws::ledger::{Ledger, ProcessedTable};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use backend::SystemHost;
use dedup::{
    Admission, CheckTokens, Claim, ClaimCondition, ClaimPartition, GrantTokens, ProcessedMessages, Release,
};
use futures::future::join_all;
use jiff::Timestamp;
use messages::{AttemptId, Host, PartitionKey, Token};
use servers::amazon::{Service, config, config_as, config_at};

use super::{client, with_table};
use contracts::sample;
use servers::net::{Fate, ScriptedServer, Unreliable};
use servers::{TestResult, unique};

fn request(partition: PartitionKey, requires: ClaimCondition) -> Claim {
    let attempt = AttemptId::from_uuid(SystemHost.fresh_id());
    let new_tokens = vec![Token::minted_by_attempt(partition, &attempt, 0)];
    let claim = sample::claim(partition, attempt, SystemHost.now());
    Claim { requires, new_tokens, max_tokens: 200, ..claim }
}

fn partition() -> PartitionKey {
    PartitionKey::from_uuid(SystemHost.fresh_id())
}

fn token(partition: PartitionKey) -> Token {
    Token::minted_at_entry(partition, SystemHost.fresh_id())
}

const THROTTLED: &str = r#"{"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "message": "The level of configured provisioned throughput for the table was exceeded"}"#;

#[tokio::test]
async fn one_of_ten_concurrent_workers_is_admitted() -> TestResult {
    with_table("partition_id", |client, table| async move {
        let partition = partition();
        let token = token(partition);
        Ledger::new(client, imports::SYSTEM, &table)
            .grant(partition, std::slice::from_ref(&token), SystemHost.now())
            .await?;
        let claims = (0..10).map(|_| async {
            let ledger = Ledger::new(super::client().await, imports::SYSTEM, &table);
            ledger.claim(&request(partition, ClaimCondition::TokenPresent(token.clone()))).await
        });
        let answers: Vec<Admission> = join_all(claims).await.into_iter().collect::<Result<_, _>>()?;
        let admitted = answers.iter().filter(|answer| matches!(answer, Admission::Admitted(_))).count();
        let busy = answers.iter().filter(|answer| matches!(answer, Admission::Busy { .. })).count();
        assert_eq!((admitted, busy), (1, 9));
        Ok(())
    })
    .await
}

/// Counts calls.
#[derive(Debug, Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Intercept for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn ledger_operation_takes_one_call() -> TestResult {
    with_table("partition_id", |_, table| async move {
        let calls = Calls::default();
        let config = aws_sdk_dynamodb::config::Builder::from(&config(Service::DynamoDb).await);
        let ledger =
            Ledger::new(Client::from_conf(config.interceptor(calls.clone()).build()), imports::SYSTEM, table);
        let partition = partition();
        let token = token(partition);
        let spent = || calls.0.swap(0, Ordering::SeqCst);
        ledger.grant(partition, std::slice::from_ref(&token), SystemHost.now()).await?;
        assert_eq!(spent(), 1, "a grant");
        for (requires, expected) in [
            (ClaimCondition::TokenPresent(token.clone()), "Admitted"),
            (ClaimCondition::ItemExists, "Busy"),
            (ClaimCondition::TokenPresent(self::token(partition)), "Duplicate"),
        ] {
            let answer = format!("{:?}", ledger.claim(&request(partition, requires)).await?);
            assert!(answer.starts_with(expected), "{answer}");
            assert_eq!(spent(), 1, "{expected}");
        }
        let later = SystemHost.now().checked_add(dedup::ledger::ITEM_LIFETIME * 2)?;
        let claim = Claim { now: later, ..request(partition, ClaimCondition::Always) };
        assert!(matches!(ledger.claim(&claim).await?, Admission::Admitted(admitted) if admitted.fence == 1));
        assert_eq!(spent(), 2, "replacing an expired item");
        Ok(())
    })
    .await
}

/// The first request of a grant arrives after its repetition was answered and the token was used, in an item with the
/// usual lifetime and in one that lasts longer.
#[tokio::test]
async fn late_copy_of_grant_restores_no_used_token() -> TestResult {
    with_table("partition_id", |client, table| async move {
        let ledger = Ledger::new(client, imports::SYSTEM, table.clone());
        let proxy = Unreliable::before(&Service::DynamoDb.address(), |_| Fate::Copied).await;
        let granting = Ledger::new(Client::new(&config_at(&proxy.address).await), imports::SYSTEM, table);
        for (until, delay) in [(0, 0), (0, 5), (365, 0), (365, 5)] {
            let (partition, now) = (partition(), SystemHost.now());
            let later = now.checked_add(jiff::SignedDuration::from_secs(delay))?;
            let until = now.checked_add(jiff::SignedDuration::from_hours(24 * until))?;
            let first = Claim { until, ..request(partition, ClaimCondition::Always) };
            ledger.claim(&first).await?;
            let token = token(partition);
            granting.grant(partition, std::slice::from_ref(&token), now).await?;
            let second = Claim {
                now: later,
                until,
                fence: 1,
                supersedes: Some(first.attempt),
                ..request(partition, ClaimCondition::TokenPresent(token.clone()))
            };
            let answer = ledger.claim(&second).await?;
            let Admission::Admitted(admitted) = answer else { panic!("{answer:?}") };
            let release = Release {
                partition,
                attempt: second.attempt,
                fence: admitted.fence,
                remove: [token.clone()].into(),
                ended: false,
                until: Some(until),
                now: later,
            };
            assert!(ledger.release(&release).await?);
            let responses = proxy.deliver_copies().await;
            assert!(!responses.is_empty());
            for response in responses {
                let is_refused = response.contains("ConditionalCheckFailedException");
                assert!(is_refused, "until {until}, after {delay} s: {response}");
            }
            assert!(!ledger.is_granted(partition, &token, later).await?);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn throttling_is_retried_then_unavailable() {
    let server = ScriptedServer::start(|_, _| (400, THROTTLED.to_owned())).await;
    let ledger = Ledger::new(Client::new(&config_at(&server.address).await), imports::SYSTEM, "ledger");
    let error = ledger.claim(&request(partition(), ClaimCondition::ItemExists)).await.unwrap_err();
    assert!(error.is_retryable(), "{}", error.chain());
    assert!(error.chain().contains("ProvisionedThroughputExceededException"), "{}", error.chain());
    assert_eq!(server.requests(), aws::MAX_ATTEMPTS as usize);
}

#[tokio::test]
async fn brief_throttling_is_hidden() -> TestResult {
    let server = ScriptedServer::start(|request, _| match request {
        0 | 1 => (400, THROTTLED.to_owned()),
        _ => (200, "{}".to_owned()),
    })
    .await;
    let store =
        ProcessedTable::new(Client::new(&config_at(&server.address).await), imports::SYSTEM, "processed");
    store.remember("key", Timestamp::MAX).await?;
    assert_eq!(server.requests(), 3);
    Ok(())
}

#[tokio::test]
async fn missing_table_names_setting() {
    let table = unique("missing");
    let ledger = Ledger::new(client().await, imports::SYSTEM, &table);
    let error = ledger.claim(&request(partition(), ClaimCondition::ItemExists)).await.unwrap_err();
    let expected = format!("there is no table \"{table}\" (set by SEARCH_IMPORT_LEDGER_TABLE)");
    assert!(error.is_retryable() && error.chain().ends_with(&expected), "{}", error.chain());
    let error = ProcessedTable::new(client().await, imports::SYSTEM, &table)
        .is_remembered("key", Timestamp::MIN)
        .await
        .unwrap_err();
    let expected = format!("there is no table \"{table}\" (set by SEARCH_IMPORT_PROCESSED_TABLE)");
    assert!(error.is_retryable() && error.chain().ends_with(&expected), "{}", error.chain());
}

/// DynamoDB Local accepts any well-formed access key.
#[tokio::test]
async fn wrong_credentials_are_reported() {
    let config = config_as(&Service::DynamoDb.address(), "not a key!", None).await;
    let ledger = Ledger::new(Client::new(&config), imports::SYSTEM, "ledger");
    let error = ledger.claim(&request(partition(), ClaimCondition::ItemExists)).await.unwrap_err();
    assert!(
        error.is_retryable() && error.chain().contains("the credentials were refused"),
        "{}",
        error.chain()
    );
    assert!(error.chain().contains("AWS_ACCESS_KEY_ID") && !error.chain().contains("a-secret-key"));
}

#[tokio::test]
async fn absent_server_is_a_transient_error() {
    let ledger = Ledger::new(Client::new(&config_at("http://127.0.0.1:1").await), imports::SYSTEM, "ledger");
    let error = ledger.claim(&request(partition(), ClaimCondition::ItemExists)).await.unwrap_err();
    assert!(error.is_retryable() && error.chain().contains("was not reached"), "{}", error.chain());
}
