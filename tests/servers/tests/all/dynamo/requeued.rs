//! An operator's requeue on the services: documents in MongoDB, the ledger in DynamoDB. `tests/scenarios` tests the
//! requeue itself.

use std::sync::Arc;
use std::time::Duration;

use aws::ledger::{LEDGER_KEY, Ledger};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use contracts::{ManualHost, sample};
use dedup::ledger::ITEM_LIFETIME;
use dedup::{
    Admission, AdmittedClaim, CheckTokens, Claim, ClaimCondition, ClaimPartition, GrantTokens, Release,
};
use jiff::{SignedDuration, Timestamp};
use messages::{Host, Message, PartitionKey, SessionId, Token};
use outbox::{Entry, Owner, View, WriteViews};
use saga::{
    Content, ExpectedMessage, ExpectedToken, Operator, Partitions, Persist, SAGA, Stores, WriteDocuments,
};
use serde_json::Value;
use servers::TestResult;
use servers::mongo::Scratch;

use super::with_table;

/// A time far in the future, so that items expire for the ledger but not for the server's TTL.
const BEGIN: Timestamp = Timestamp::constant(2_840_140_800, 0);
const LEASE: SignedDuration = SignedDuration::from_secs(30);

struct World {
    scratch: Scratch,
    dynamo: Client,
    table: String,
    ledger: Arc<Ledger>,
    host: Arc<ManualHost>,
    partition: PartitionKey,
    operator: Operator,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl World {
    async fn new(dynamo: Client, table: String) -> Result<Self, Failure> {
        let (scratch, host) = (Scratch::new().await?, Arc::new(ManualHost::new(BEGIN, 1)));
        let ledger = Arc::new(Ledger::new(dynamo.clone(), imports::SYSTEM, &table));
        let mongo = Arc::new(scratch.mongo.clone());
        let operator = Operator {
            stores: Stores::of(&mongo, mongo.saga_outbox(), mongo.session_outbox()),
            partitions: Partitions::of(ledger.clone()),
            check_tokens: Ok(ledger.clone()),
            host: host.clone(),
            lease: LEASE,
        };
        let partition = sample::partition(&*host);
        Ok(Self { scratch, dynamo, table, ledger, host, partition, operator })
    }

    async fn claim(&self, requires: ClaimCondition, mint: &[Token]) -> Result<(Claim, Admission), Failure> {
        let claim = sample::claim(self.partition, sample::attempt(&*self.host), self.host.now());
        let claim = Claim { requires, new_tokens: mint.to_vec(), max_tokens: 200, ..claim };
        Ok(dedup::ledger::ask(&*self.ledger, claim).await?)
    }

    /// Enters and leaves the partition, like a worker that has used the tokens in `remove`.
    async fn enter(
        &self,
        requires: ClaimCondition,
        mint: &[Token],
        remove: &[Token],
    ) -> Result<AdmittedClaim, Failure> {
        let (claim, admission) = self.claim(requires, mint).await?;
        let Admission::Admitted(admitted) = admission else { panic!("not admitted: {admission:?}") };
        let remove = remove.iter().cloned().collect();
        let Claim { partition, attempt, now, .. } = claim;
        let release =
            Release { partition, attempt, fence: admitted.fence, remove, ended: false, until: None, now };
        assert!(self.ledger.release(&release).await?);
        Ok(admitted)
    }

    /// Returns a token as an attempt mints it for a reply.
    fn token(&self) -> Token {
        Token::minted_by_attempt(self.partition, &sample::attempt(&*self.host), 0)
    }

    async fn is_granted(&self, token: &Token) -> Result<bool, Failure> {
        Ok(self.ledger.is_granted(self.partition, token, self.host.now()).await?)
    }

    /// Returns the only remaining entry in the outbox of the partition.
    async fn entry(&self) -> Result<Entry, Failure> {
        let pending = self.operator.stores.saga_outbox.pending(None, 10).await?;
        let mut entries = pending.into_iter().flat_map(|pending| pending.entries);
        let (Some(Ok(entry)), None) = (entries.next(), entries.next()) else { panic!("not one entry") };
        Ok(entry)
    }

    async fn end(self) -> TestResult {
        self.scratch.end().await
    }
}

/// The state of the partition's item after a long idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Lives,
    /// Expired but still stored: DynamoDB deletes items days later.
    Expired,
    Deleted,
}

#[tokio::test]
async fn requeue_grants_expected_tokens_for_any_item() -> TestResult {
    for item in [Item::Lives, Item::Expired, Item::Deleted] {
        with_table(LEDGER_KEY, |client, table| async move {
            let world = World::new(client, table).await?;
            requeue(&world, item).await?;
            world.end().await
        })
        .await?;
    }
    Ok(())
}

/// The tokens that a partition expects, and those that it no longer expects.
struct Tokens {
    expected: Token,
    used: Token,
    /// The fence in the partition's document.
    fence: u64,
}

/// Creates a partition that expects the reply to an exhausted request.
async fn with_exhausted_request(world: &World) -> Result<Tokens, Failure> {
    let host = &*world.host;
    let (expected, used) = (world.token(), world.token());
    world.enter(ClaimCondition::Always, &[expected.clone(), used.clone()], &[]).await?;
    world.enter(ClaimCondition::TokenPresent(used.clone()), &[], std::slice::from_ref(&used)).await?;
    let fence = world.enter(ClaimCondition::ItemExists, &[], &[]).await?.fence;
    let content = Content {
        expected: vec![ExpectedToken {
            token: expected.clone(),
            by: ExpectedMessage::Reply(host.fresh_id()),
        }],
        fence,
        ..sample::content(host, "waits for a reply")
    };
    let request = Entry { poisoned: true, ..sample::entry(host, world.partition, host.now())? };
    let write = Persist { add: vec![request], ..sample::persist(world.partition, None, content) };
    world.scratch.mongo.persist(&[write], host.now()).await?;
    Ok(Tokens { expected, used, fence })
}

async fn forget(world: &World, item: Item) -> TestResult {
    if item != Item::Lives {
        world.host.advance(Duration::try_from(ITEM_LIFETIME)? * 2);
    }
    if item == Item::Deleted {
        let key = AttributeValue::S(world.partition.to_string());
        world.dynamo.delete_item().table_name(&world.table).key(LEDGER_KEY, key).send().await?;
    }
    Ok(())
}

async fn requeue(world: &World, item: Item) -> TestResult {
    let Tokens { expected, used, fence } = with_exhausted_request(world).await?;
    forget(world, item).await?;
    assert_eq!(world.is_granted(&expected).await?, item == Item::Lives, "{item:?}");
    let with_exhausted_request = world.entry().await?;
    for _ in 0..2 {
        world.operator.requeue(Owner::Saga(world.partition), &with_exhausted_request).await?;
        assert!(with_exhausted_request.poisoned && !world.entry().await?.poisoned, "{item:?}");
        let granted = (world.is_granted(&expected).await?, world.is_granted(&used).await?);
        assert_eq!(granted, (true, false), "{item:?}: what was used stays used");
    }
    let reply = ClaimCondition::TokenPresent(expected.clone());
    let admitted = world.enter(reply.clone(), &[], std::slice::from_ref(&expected)).await?;
    assert!(admitted.fence > fence, "{item:?}: the worker does not look as if it had lost the partition");
    assert!(
        matches!(world.claim(reply, &[]).await?.1, Admission::Duplicate),
        "{item:?}: the reply counts once"
    );
    Ok(())
}

#[tokio::test]
async fn requeue_readmits_only_unused_event() -> TestResult {
    with_table(LEDGER_KEY, |client, table| async move {
        let world = World::new(client, table).await?;
        let host = &*world.host;
        let token = Token::minted_at_entry(world.partition, host.fresh_id());
        let message = Message { token: Some(token.clone()), ..sample::message(host, world.partition) };
        let entry = Entry { poisoned: true, ..Entry::message(&message, SAGA, host.now())? };
        let session = Owner::Session(SessionId::from_uuid(host.fresh_id()));
        world.ledger.grant(world.partition, std::slice::from_ref(&token), host.now()).await?;
        host.advance(Duration::try_from(ITEM_LIFETIME)? * 2);
        assert!(!world.is_granted(&token).await?);
        let refused = world.operator.requeue(session, &entry).await.unwrap_err();
        assert!(!refused.is_retryable(), "an instance without a view may have ended: {refused}");
        let view = View::new(world.partition, Value::Null, false);
        world.scratch.mongo.write(&[view]).await?;
        for _ in 0..2 {
            world.operator.requeue(session, &entry).await?;
            assert!(world.is_granted(&token).await?);
        }
        world.enter(ClaimCondition::TokenPresent(token.clone()), &[], std::slice::from_ref(&token)).await?;
        world.operator.requeue(session, &entry).await?;
        assert!(!world.is_granted(&token).await?, "its item lives, so the token was used");
        let write = sample::persist(world.partition, None, sample::content(host, "waits for an event"));
        world.scratch.mongo.persist(&[write], host.now()).await?;
        host.advance(Duration::try_from(ITEM_LIFETIME)? * 2);
        let refused = world.operator.requeue(session, &entry).await.unwrap_err();
        assert!(!refused.is_retryable() && !world.is_granted(&token).await?, "{refused}");
        world.end().await
    })
    .await
}
