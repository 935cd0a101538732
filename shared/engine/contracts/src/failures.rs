//! The contract of [`KeepFailures`].

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use jiff::Timestamp;
use messages::{Host, MessageId, PartitionKey, Queue};
use outbox::Owner;
use saga::KeepFailures;
use saga::failures::store::MAX_GROUPS;
use saga::failures::{
    AuditEntry, Causes, Change, Failure, FailureId, FailureReport, FailureStatus, Operation, OperationId,
    Origin, Phase, Selection, State,
};

use crate::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// The store.
    pub store: &'a dyn KeepFailures,
    /// Ids and time.
    pub host: &'a dyn Host,
    /// Makes the data of a stored value unreadable, bypassing the ports.
    pub damage: &'a Damage<'a>,
}

/// Makes the data of a stored value unreadable.
pub type Damage<'a> = dyn Fn(StoredValue) -> BoxFuture<'a, CheckResult> + Send + Sync + 'a;

/// A stored value.
#[derive(Debug, Clone, Copy)]
pub enum StoredValue {
    /// A failure.
    Failure(FailureId),
    /// An operation.
    Operation(OperationId),
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    failure_round_trips(ports).await?;
    failure_change_requires_the_read_revision(ports).await?;
    changes_of_one_call_are_independent(ports).await?;
    selection_pages_start_with_the_latest(ports).await?;
    selection_returns_only_matching_failures(ports).await?;
    causes_start_with_the_most_frequent(ports).await?;
    causes_beyond_the_listed_ones_count(ports).await?;
    unreadable_failure_does_not_hide_others(ports).await?;
    only_one_operation_runs(ports).await?;
    operation_change_requires_the_read_revision(ports).await?;
    unreadable_operation_does_not_hide_others(ports).await?;
    audit_log_starts_with_the_latest(ports).await
}

fn report(host: &dyn Host, reason: &str) -> FailureReport {
    FailureReport {
        origin: Origin::DeadLetter { queue: Queue::named("saga-dead"), source: Queue::named("saga") },
        body: format!("no message: {} \u{0} $ROOT", host.fresh_id()),
        reason: reason.to_owned(),
        mark: host.fresh_id().to_string(),
        closed: None,
    }
}

fn failure(host: &dyn Host, reason: &str) -> Failure {
    Failure::first(&report(host, reason), sample::now(host))
}

async fn stored(ports: &Ports<'_>, failure: Failure) -> Result<Failure, messages::StoreError> {
    let change = Change { id: failure.id, revision: failure.revision, next: Some(failure.clone()) };
    assert_eq!(ports.store.change(&[change]).await?, [true]);
    Ok(Failure { revision: failure.revision + 1, ..failure })
}

/// This holds for failures of any origin and in any state.
pub async fn failure_round_trips(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let partition = sample::partition(ports.host);
    let owner = Owner::Saga(partition);
    let effect = Origin::Effect { owner, entry: MessageId::from_uuid(ports.host.fresh_id()) };
    let unreadable = Origin::Unreadable { place: "a \"place\"".to_owned(), of_sessions: true };
    let states = [
        State::Open,
        State::Retrying { operation: OperationId::from_uuid(ports.host.fresh_id()), since: now },
        State::Retried { at: now },
        State::Closed { why: "told".to_owned() },
        State::Archived { why: "known".to_owned() },
    ];
    for (index, state) in states.into_iter().enumerate() {
        let first = failure(ports.host, "the disk is full");
        let origin = [first.origin.clone(), effect.clone(), unreadable.clone()][index % 3].clone();
        let failure = Failure { origin, partition: Some(partition), ..first }.into_state(state, now);
        let stored = stored(ports, failure).await?;
        let unknown = FailureId::from_uuid(ports.host.fresh_id());
        let found = ports.store.failures(&[unknown, stored.id]).await?;
        assert_eq!(found, [None, Some(stored)]);
    }
    assert_eq!(ports.store.failures(&[]).await?, []);
    assert_eq!(ports.store.change(&[]).await?, [] as [bool; 0]);
    Ok(())
}

/// If two callers have read the same revision, only one changes it.
pub async fn failure_change_requires_the_read_revision(ports: &Ports<'_>) -> CheckResult {
    let first = failure(ports.host, "one");
    let begun = Change { id: first.id, revision: 0, next: Some(first.clone()) };
    assert_eq!(ports.store.change(std::slice::from_ref(&begun)).await?, [true]);
    assert_eq!(ports.store.change(&[begun]).await?, [false], "it is there");
    let again = Failure { seen: 2, ..first.clone() };
    let change = Change { id: first.id, revision: 1, next: Some(again.clone()) };
    assert_eq!(ports.store.change(std::slice::from_ref(&change)).await?, [true]);
    assert_eq!(ports.store.change(&[change]).await?, [false], "it was changed");
    let gone = |revision| Change { id: first.id, revision, next: None };
    assert_eq!(ports.store.change(&[gone(1)]).await?, [false]);
    assert_eq!(ports.store.failures(&[first.id]).await?, [Some(Failure { revision: 2, ..again })]);
    assert_eq!(ports.store.change(&[gone(2)]).await?, [true]);
    assert_eq!(ports.store.failures(&[first.id]).await?, [None]);
    Ok(())
}

/// A rejected change does not affect the others.
pub async fn changes_of_one_call_are_independent(ports: &Ports<'_>) -> CheckResult {
    let known = stored(ports, failure(ports.host, "known")).await?;
    let new = failure(ports.host, "new");
    let changes = [
        Change { id: known.id, revision: 7, next: None },
        Change { id: new.id, revision: 0, next: Some(new.clone()) },
    ];
    assert_eq!(ports.store.change(&changes).await?, [false, true]);
    let found = ports.store.failures(&[known.id, new.id]).await?;
    assert!(found.iter().all(Option::is_some));
    Ok(())
}

fn at(failure: Failure, seconds: i64) -> Failure {
    let last_seen = sample::later(failure.last_seen, seconds);
    Failure { last_seen, ..failure }
}

/// Each failure is returned once, including failures of the same time.
pub async fn selection_pages_start_with_the_latest(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    let mut wanted = Vec::new();
    for seconds in [3, 1, 2, 2, 2] {
        let failure = Failure { partition: Some(partition), ..failure(ports.host, "a page") };
        wanted.push(stored(ports, at(failure, seconds)).await?);
    }
    wanted.sort_by_key(|failure| std::cmp::Reverse((failure.last_seen, failure.id)));
    let selection = Selection { partition: Some(partition), ..Selection::of(FailureStatus::Open) };
    let mut found: Vec<Failure> = Vec::new();
    loop {
        let page = ports.store.select(&selection, found.last().map(Failure::place), 2).await?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found, wanted);
    assert_eq!(ports.store.select(&selection, None, 0).await?, []);
    Ok(())
}

/// The criteria are state, cause, position, partition, time and ids.
pub async fn selection_returns_only_matching_failures(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    let now = sample::now(ports.host);
    // All failures have the same time, because a second of the clock may end between two of them.
    let of = |failure: Failure| Failure { partition: Some(partition), last_seen: now, ..failure };
    let plain = stored(ports, of(failure(ports.host, "plain"))).await?;
    let other_cause = stored(ports, of(failure(ports.host, "other"))).await?;
    let owner = Owner::Saga(partition);
    let origin = Origin::Effect { owner, entry: MessageId::from_uuid(ports.host.fresh_id()) };
    let effect = stored(ports, Failure { origin, ..of(failure(ports.host, "plain")) }).await?;
    let later = stored(ports, at(of(failure(ports.host, "plain")), 60)).await?;
    let archived = of(failure(ports.host, "plain")).into_state(State::Archived { why: String::new() }, now);
    let archived = stored(ports, archived).await?;
    let open = Selection { partition: Some(partition), ..Selection::of(FailureStatus::Open) };
    let cause = Some(plain.fingerprint.clone());
    let cases: [(Selection, Vec<&Failure>); 6] = [
        (open.clone(), vec![&plain, &other_cause, &effect, &later]),
        (Selection { standing: FailureStatus::Archived, ..open.clone() }, vec![&archived]),
        (Selection { fingerprint: cause.clone(), ..open.clone() }, vec![&plain, &effect, &later]),
        (Selection { place: Some("outbox".to_owned()), ..open.clone() }, vec![&effect]),
        (
            Selection { until: Some(plain.last_seen), fingerprint: cause, ..open.clone() },
            vec![&plain, &effect],
        ),
        (Selection { ids: BTreeSet::from([later.id, archived.id]), ..open }, vec![&later]),
    ];
    for (selection, wanted) in cases {
        let found = ports.store.select(&selection, None, 100).await?;
        let ids = |failures: &[&Failure]| failures.iter().map(|failure| failure.id).collect::<BTreeSet<_>>();
        assert_eq!(ids(&found.iter().collect::<Vec<_>>()), ids(&wanted), "{selection:?}");
        assert!(found.iter().all(|failure| selection.has(failure)));
        assert_eq!(ports.store.causes(&selection).await?.count, wanted.len() as u64, "{selection:?}");
    }
    Ok(())
}

/// Each cause has an example and a time range.
pub async fn causes_start_with_the_most_frequent(ports: &Ports<'_>) -> CheckResult {
    let partition: PartitionKey = sample::partition(ports.host);
    let of = |reason: &str, message: &str| Failure {
        partition: Some(partition),
        message: message.to_owned(),
        ..failure(ports.host, reason)
    };
    stored(ports, of("rare", "Paid")).await?;
    let early = stored(ports, of("loading 1 failed", "Paid")).await?;
    let late = stored(ports, at(of("loading 2 failed", "Sent"), 9)).await?;
    let selection = Selection { partition: Some(partition), ..Selection::of(FailureStatus::Open) };
    let causes = ports.store.causes(&selection).await?;
    let [frequent, rare] = &causes.groups[..] else { panic!("{causes:?}") };
    assert_eq!((frequent.count, rare.count, rare.reason.as_str()), (2, 1, "rare"));
    assert_eq!(frequent.messages, BTreeSet::from(["Paid".to_owned(), "Sent".to_owned()]));
    assert!([&early.reason, &late.reason].contains(&&frequent.reason));
    assert_eq!((frequent.first_seen, frequent.last_seen), (early.first_seen, late.last_seen));
    assert_eq!((causes.count, causes.last_seen), (3, Some(late.last_seen)));
    let nothing = Selection { until: Some(Timestamp::UNIX_EPOCH), ..selection };
    assert_eq!(ports.store.causes(&nothing).await?, Causes::default());
    Ok(())
}

/// A retry of all failures selects them by the time of the last one. This failure may have a rare cause.
pub async fn causes_beyond_the_listed_ones_count(ports: &Ports<'_>) -> CheckResult {
    let partition: PartitionKey = sample::partition(ports.host);
    let of = |cause: usize, seconds| {
        let failure = failure(ports.host, "many causes");
        let fingerprint = format!("{}-{cause:03}", failure.fingerprint);
        at(Failure { partition: Some(partition), fingerprint, ..failure }, seconds)
    };
    for cause in 0..MAX_GROUPS {
        stored(ports, of(cause, 1)).await?;
        stored(ports, of(cause, 2)).await?;
    }
    let last = stored(ports, of(MAX_GROUPS, 9)).await?;
    let selection = Selection { partition: Some(partition), ..Selection::of(FailureStatus::Open) };
    let causes = ports.store.causes(&selection).await?;
    assert_eq!(causes.groups.len(), MAX_GROUPS);
    assert_eq!((causes.count, causes.last_seen), (2 * MAX_GROUPS as u64 + 1, Some(last.last_seen)));
    Ok(())
}

/// A list skips it, and its pages have as many failures as without it, since a short page is the last one. Its causes
/// are counted. A read by its id returns the error.
pub async fn unreadable_failure_does_not_hide_others(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    let create = async |seconds| {
        let failure = Failure { partition: Some(partition), ..failure(ports.host, "unreadable") };
        stored(ports, at(failure, seconds)).await
    };
    let (latest, damaged, earliest) = (create(3).await?, create(2).await?, create(1).await?);
    (ports.damage)(StoredValue::Failure(damaged.id)).await?;
    let open = Selection { partition: Some(partition), ..Selection::of(FailureStatus::Open) };
    let ids = BTreeSet::from([latest.id, damaged.id, earliest.id]);
    for selection in [
        open.clone(),
        Selection { fingerprint: Some(latest.fingerprint.clone()), ..open.clone() },
        Selection { ids, ..open },
    ] {
        let page = ports.store.select(&selection, None, 2).await?;
        assert_eq!(page, [latest.clone(), earliest.clone()], "{selection:?}");
        let rest = ports.store.select(&selection, Some(latest.place()), 2).await?;
        assert_eq!(rest, std::slice::from_ref(&earliest), "{selection:?}");
        let counted = ports.store.causes(&selection).await?.count;
        assert!((2..=3).contains(&counted), "{counted} of {selection:?}");
    }
    assert!(ports.store.failures(&[damaged.id]).await.is_err(), "it is not absent");
    assert_eq!(ports.store.failures(&[latest.id]).await?, [Some(latest)]);
    Ok(())
}

fn operation(host: &dyn Host, begun_at: Timestamp) -> Operation {
    Operation {
        id: OperationId::from_uuid(host.fresh_id()),
        by: "somebody".to_owned(),
        begun_at,
        selection: Selection::of(FailureStatus::Open),
        limit: Some(3),
        per_second: 10,
        canary: 0,
        canaries: Vec::new(),
        total: 3,
        retried: 0,
        refused: 0,
        phase: Phase::Running,
        next_step_at: begun_at,
        revision: 1,
    }
}

/// A second operation is refused until the first one has ended.
pub async fn only_one_operation_runs(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    assert_eq!(ports.store.running().await?, None);
    let first = operation(ports.host, now);
    assert!(ports.store.advance(0, &first).await?);
    let second = operation(ports.host, sample::later(now, 1));
    assert!(!ports.store.advance(0, &second).await?, "another one is running");
    assert_eq!(ports.store.operation(second.id).await?, None);
    assert_eq!(ports.store.running().await?.as_ref(), Some(&first));
    end(ports, &first).await?;
    assert!(ports.store.advance(0, &second).await?);
    let latest = ports.store.operations(2).await?;
    assert_eq!(latest.iter().map(|operation| operation.id).collect::<Vec<_>>(), [second.id, first.id]);
    end(ports, &second).await
}

/// A caller that has not read the latest revision changes nothing.
pub async fn operation_change_requires_the_read_revision(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let first = operation(ports.host, now);
    assert!(ports.store.advance(0, &first).await?);
    assert!(!ports.store.advance(0, &first).await?, "it is there");
    let until = sample::later(now, 60);
    let watching = Operation { retried: 1, phase: Phase::Watching { until }, revision: 2, ..first };
    assert!(ports.store.advance(1, &watching).await?);
    assert!(!ports.store.advance(1, &watching).await?, "it has changed");
    assert_eq!(ports.store.running().await?.as_ref(), Some(&watching));
    end(ports, &watching).await
}

/// A list skips an unreadable operation, and still has as many operations as requested. A read by the operation's id
/// returns the error.
pub async fn unreadable_operation_does_not_hide_others(ports: &Ports<'_>) -> CheckResult {
    let now = sample::later(sample::now(ports.host), 3_600);
    let mut ids = Vec::new();
    for seconds in 0..4 {
        let operation = operation(ports.host, sample::later(now, seconds));
        assert!(ports.store.advance(0, &operation).await?);
        end(ports, &operation).await?;
        ids.insert(0, operation.id);
    }
    let damaged = ids.remove(1);
    (ports.damage)(StoredValue::Operation(damaged)).await?;
    let latest = ports.store.operations(3).await?;
    assert_eq!(latest.iter().map(|operation| operation.id).collect::<Vec<_>>(), ids);
    assert!(ports.store.operation(damaged).await.is_err(), "it is not absent");
    assert_eq!(ports.store.running().await?, None, "it has ended");
    Ok(())
}

async fn end(ports: &Ports<'_>, operation: &Operation) -> CheckResult {
    let stopped = Phase::Stopped { at: sample::now(ports.host), why: "enough".to_owned() };
    let ended = Operation { phase: stopped, revision: operation.revision + 1, ..operation.clone() };
    assert!(ports.store.advance(operation.revision, &ended).await?);
    assert_eq!(ports.store.operation(operation.id).await?, Some(ended));
    assert_eq!(ports.store.running().await?, None);
    Ok(())
}

/// The entry is returned unchanged.
pub async fn audit_log_starts_with_the_latest(ports: &Ports<'_>) -> CheckResult {
    let entry = |seconds, did: &str| AuditEntry {
        at: sample::later(sample::now(ports.host), seconds),
        by: "somebody".to_owned(),
        did: did.to_owned(),
        to: "something".to_owned(),
        why: "because".to_owned(),
    };
    let (one, other) = (entry(1_000, "archived"), entry(2_000, "deleted"));
    ports.store.note(&one).await?;
    ports.store.note(&other).await?;
    assert_eq!(ports.store.audit_entries(2).await?, [other, one]);
    Ok(())
}
