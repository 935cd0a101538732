//! The ledger behaves like the pure item, for any sequence of operations.

use std::collections::BTreeSet;

use aws::ledger::Ledger;
use dedup::ledger::{ITEM_LIFETIME, Item};
use dedup::{Admission, Claim, ClaimCondition, ClaimPartition, GrantTokens, Release};
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, PartitionKey, Token};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::with_table;
use servers::TestResult;

const CASES: u32 = 48;
/// The partition of the tokens; the ledger does not check it.
const HOME: PartitionKey = PartitionKey::from_uuid(Uuid::nil());

#[derive(Debug, Clone)]
enum Step {
    Claim {
        attempt: u128,
        finished: Option<u128>,
        requires: ClaimCondition,
        mint: usize,
        room: usize,
        fences_ago: u64,
        above: u64,
        days: i64,
    },
    Release {
        attempt: u128,
        fences_ago: u64,
        remove: Vec<usize>,
        ended: bool,
        days: Option<i64>,
    },
    Grant {
        tokens: Vec<usize>,
    },
}

/// Returns a token of an entry point, of one of three attempts, or one that is never granted.
fn token(n: usize) -> Token {
    match n {
        0..3 => Token::minted_at_entry(HOME, Uuid::from_u128(n as u128)),
        3..9 => Token::minted_by_attempt(HOME, &attempt((n / 2) as u128), n % 2),
        _ => Token::minted_at_entry(HOME, Uuid::from_u128(99)),
    }
}

fn attempt(n: u128) -> AttemptId {
    AttemptId::from_uuid(Uuid::from_u128(n))
}

/// Generates mostly satisfied conditions, because a rejected claim changes nothing.
fn requirement() -> impl Strategy<Value = ClaimCondition> {
    prop_oneof![
        4 => (0..3_usize).prop_map(|n| ClaimCondition::TokenPresent(token(n))),
        1 => (3..10_usize).prop_map(|n| ClaimCondition::TokenPresent(token(n))),
        3 => Just(ClaimCondition::ItemExists),
        2 => Just(ClaimCondition::Always),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let tokens = |max: usize| proptest::collection::vec(0..max, 0..4_usize);
    let fences_ago = || prop_oneof![6 => Just(0), 1 => Just(1_u64)];
    let days = || prop_oneof![4 => Just(0), 1 => 1..100_i64];
    let release = (1..4_u128, fences_ago(), tokens(9), prop::bool::weighted(0.2), prop::option::of(days()));
    let asked = (1..4_u128, prop::option::of(1..4_u128), requirement(), 0..3_usize, 0..5_usize);
    let above = prop_oneof![4 => Just(0), 1 => 1..5_u64];
    prop_oneof![
        5 => (asked, fences_ago(), above, days()).prop_map(
            |((attempt, finished, requires, mint, room), fences_ago, above, days)| {
                Step::Claim { attempt, finished, requires, mint, room, fences_ago, above, days }
            }
        ),
        3 => release.prop_map(|(attempt, fences_ago, remove, ended, days)| {
            Step::Release { attempt, fences_ago, remove, ended, days }
        }),
        2 => tokens(3).prop_map(|tokens| Step::Grant { tokens }),
    ]
}

/// Generates the time before a step: mostly short, sometimes a lease, rarely an item's lifetime.
fn passing() -> impl Strategy<Value = SignedDuration> {
    let nanos = SignedDuration::from_nanos;
    prop_oneof![
        12 => (0..3_i64).prop_map(SignedDuration::from_secs),
        2 => Just(SignedDuration::from_secs(30)),
        1 => Just(SignedDuration::from_secs(30).saturating_sub(nanos(1))),
        1 => Just(ITEM_LIFETIME),
        1 => Just(ITEM_LIFETIME.saturating_sub(SignedDuration::from_secs(1))),
    ]
}

#[test]
fn ledger_matches_model_for_any_sequence() -> TestResult {
    let runtime = Runtime::new()?;
    let handle = runtime.handle().clone();
    runtime.block_on(with_table("partition_id", |client, table| async move {
        let ledger = Ledger::new(client, imports::SYSTEM, table);
        let cases = proptest::collection::vec((passing(), step()), 1..32);
        // The runner is synchronous and needs a thread that may block.
        let checked = tokio::task::spawn_blocking(move || {
            let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
            TestRunner::new(config).run(&cases, |steps| {
                handle.block_on(check(&ledger, steps));
                Ok(())
            })
        });
        Ok(checked.await??)
    }))
}

/// A time far in the future, so that items expire for the ledger but not for the server's TTL.
const BEGIN: Timestamp = Timestamp::constant(2_840_140_800, 0);

async fn check(ledger: &Ledger, steps: Vec<(SignedDuration, Step)>) {
    let partition = PartitionKey::from_uuid(Uuid::new_v4());
    let (mut now, mut model) = (BEGIN, None);
    for (passing, step) in steps {
        now = now.checked_add(passing).unwrap();
        take(ledger, partition, now, &mut model, step).await;
    }
    // The remaining state is also equal: the tokens, and the holder.
    for attempt in [1, 2] {
        take(
            ledger,
            partition,
            now,
            &mut model,
            Step::Claim {
                attempt,
                finished: None,
                requires: ClaimCondition::ItemExists,
                mint: 0,
                room: 0,
                fences_ago: 0,
                above: 0,
                days: 0,
            },
        )
        .await;
    }
}

async fn take(
    ledger: &Ledger,
    partition: PartitionKey,
    now: Timestamp,
    model: &mut Option<Item>,
    step: Step,
) {
    match step {
        Step::Claim { attempt: n, finished, requires, mint, room, fences_ago, above, days } => {
            let new_tokens =
                (0..mint).map(|index| Token::minted_by_attempt(HOME, &attempt(n), index)).collect();
            let lease = SignedDuration::from_secs(30);
            let (supersedes, max_tokens) = (finished.map(attempt), room);
            let alive = model.as_ref().filter(|item| item.expires_at > now);
            let fence = alive.map_or(0, |item| item.fence).saturating_sub(fences_ago);
            let (attempt, until) = (attempt(n), later(now, days));
            let claim = Claim {
                partition,
                attempt,
                now,
                lease,
                supersedes,
                requires,
                new_tokens,
                max_tokens,
                fence,
                above,
                until,
            };
            let (expected, next) = Item::claim(model.clone(), &claim);
            assert_eq!(ledger.claim(&claim).await.unwrap(), expected, "{claim:?} on {model:?}");
            if let Admission::Admitted(_) = expected {
                *model = next.map(whole_seconds);
            }
        }
        Step::Release { attempt: n, fences_ago, remove, ended, days } => {
            let fence = model.as_ref().map_or(0, |item| item.fence).saturating_sub(fences_ago);
            let remove: BTreeSet<Token> = remove.into_iter().map(token).collect();
            let (attempt, until) = (attempt(n), days.map(|days| later(now, days)));
            let release = Release { partition, attempt, fence, remove, ended, until, now };
            let next = model.clone().and_then(|item| item.release(&release));
            assert_eq!(ledger.release(&release).await.unwrap(), next.is_some(), "{release:?} on {model:?}");
            *model = next.map(whole_seconds).or_else(|| model.take());
        }
        Step::Grant { tokens } => {
            let tokens: Vec<Token> = tokens.into_iter().map(token).collect();
            let item = Item::with_tokens(model.take(), &tokens, now);
            ledger.grant(partition, &tokens, now).await.unwrap();
            *model = Some(whole_seconds(item));
        }
    }
}

fn later(now: Timestamp, days: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_hours(24 * days)).unwrap()
}

/// Rounds an expiry up, which DynamoDB stores less precisely.
fn whole_seconds(mut item: Item) -> Item {
    if item.expires_at.subsec_nanosecond() > 0 {
        item.expires_at = Timestamp::from_second(item.expires_at.as_second() + 1).unwrap();
    }
    item
}
