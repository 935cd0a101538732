//! The contract of [`ClaimPartition`], [`GrantTokens`] and [`CheckTokens`]: the semantics of [`dedup::ledger::Item`],
//! atomically.

use std::collections::BTreeSet;

use dedup::ledger::{self, ITEM_LIFETIME};
use dedup::{
    Admission, AdmittedClaim, CheckTokens, Claim, ClaimCondition, ClaimPartition, GrantTokens, Release,
    Tokens,
};
use futures::future::{join_all, try_join_all};
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Host, PartitionKey, StoreError, Token};

use crate::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// Claims and releases.
    pub claim: &'a dyn ClaimPartition,
    /// Grants.
    pub grant: &'a dyn GrantTokens,
    /// Looks up tokens.
    pub check: &'a dyn CheckTokens,
    /// Ids and time.
    pub host: &'a dyn Host,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    token_admits_until_its_release(ports).await?;
    unknown_partition_admits_only_unconditional_claims(ports).await?;
    claim_returns_all_tokens_with_new_ones(ports).await?;
    tokens_are_added_within_the_capacity(ports).await?;
    concurrent_claims_admit_exactly_one(ports).await?;
    held_partition_is_busy_until_lease_expires(ports).await?;
    finished_attempt_does_not_block_claim(ports).await?;
    missing_token_is_duplicate_while_partition_is_held(ports).await?;
    a_zombie_releases_nothing(ports).await?;
    attempt_is_readmitted_after_lost_reply(ports).await?;
    ended_partition_loses_all_tokens(ports).await?;
    an_expired_item_is_absent(ports).await?;
    duplicate_claim_changes_nothing(ports).await?;
    item_outlives_awaited_messages(ports).await?;
    expired_item_continues_from_document_fence(ports).await?;
    grants(ports).await
}

/// Checks grants and revocations.
async fn grants(ports: &Ports<'_>) -> CheckResult {
    granting_again_changes_nothing(ports).await?;
    tokens_of_several_grants_add_up(ports).await?;
    repeated_begin_restores_no_token(ports).await?;
    token_is_granted_until_its_release(ports).await?;
    revoked_token_admits_nothing(ports).await
}

const LEASE: i64 = 30;

struct Partition<'a> {
    ports: &'a Ports<'a>,
    id: PartitionKey,
    token: Token,
    now: Timestamp,
}

impl<'a> Partition<'a> {
    /// A partition with one token.
    async fn granted(ports: &'a Ports<'a>) -> Result<Self, StoreError> {
        let partition = Self::unknown(ports);
        ports.grant.grant(partition.id, std::slice::from_ref(&partition.token), partition.now).await?;
        Ok(partition)
    }

    fn unknown(ports: &'a Ports<'a>) -> Self {
        let id = sample::partition(ports.host);
        let token = Token::minted_at_entry(id, ports.host.fresh_id());
        Self { ports, id, token, now: sample::now(ports.host) }
    }

    fn request(&self, attempt: AttemptId, after: i64, requires: ClaimCondition) -> Claim {
        let new_tokens = vec![Token::minted_by_attempt(self.id, &attempt, 0)];
        let claim = sample::claim(self.id, attempt, sample::later(self.now, after));
        let lease = SignedDuration::from_secs(LEASE);
        Claim { lease, requires, new_tokens, max_tokens: 200, ..claim }
    }

    async fn claim(
        &self,
        after: i64,
        requires: ClaimCondition,
    ) -> Result<(AttemptId, Admission), StoreError> {
        let attempt = sample::attempt(self.ports.host);
        let answer = asked(self.ports, self.request(attempt, after, requires)).await?;
        Ok((attempt, answer))
    }

    async fn admitted(&self, after: i64) -> Result<(AttemptId, AdmittedClaim), StoreError> {
        match self.claim(after, ClaimCondition::TokenPresent(self.token.clone())).await? {
            (attempt, Admission::Admitted(admitted)) => Ok((attempt, admitted)),
            (_, other) => panic!("not admitted: {other:?}"),
        }
    }

    fn giving_back(&self, attempt: AttemptId, fence: u64, after: i64) -> Release {
        Release {
            partition: self.id,
            attempt,
            fence,
            remove: BTreeSet::new(),
            ended: false,
            until: None,
            now: sample::later(self.now, after),
        }
    }

    fn needs_token(&self) -> ClaimCondition {
        ClaimCondition::TokenPresent(self.token.clone())
    }
}

/// Returns the answer to a claim with the current fence of the partition.
async fn asked(ports: &Ports<'_>, claim: Claim) -> Result<Admission, StoreError> {
    Ok(ledger::ask(ports.claim, claim).await?.1)
}

fn is_duplicate(answer: &(AttemptId, Admission)) -> bool {
    answer.1 == Admission::Duplicate
}

/// A released token never admits again. A release that does not name the token keeps it.
pub async fn token_admits_until_its_release(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (attempt, first) = partition.admitted(0).await?;
    assert!(ports.claim.release(&partition.giving_back(attempt, first.fence, 1)).await?);
    let (attempt, second) = partition.admitted(2).await?;
    assert!(second.fence > first.fence, "the fence grows with each claim");
    let release = Release {
        remove: [partition.token.clone()].into(),
        ..partition.giving_back(attempt, second.fence, 3)
    };
    assert!(ports.claim.release(&release).await?);
    assert!(is_duplicate(&partition.claim(4, partition.needs_token()).await?));
    assert!(!ports.claim.release(&release).await?, "it was given back already");
    Ok(())
}

/// Unconditional claims belong to messages from outside.
pub async fn unknown_partition_admits_only_unconditional_claims(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::unknown(ports);
    assert!(is_duplicate(&partition.claim(0, partition.needs_token()).await?));
    assert!(is_duplicate(&partition.claim(0, ClaimCondition::ItemExists).await?));
    let (attempt, answer) = partition.claim(0, ClaimCondition::Always).await?;
    let Admission::Admitted(admitted) = answer else { panic!("not admitted: {answer:?}") };
    assert_eq!(admitted.tokens, Tokens::Listed([Token::minted_by_attempt(partition.id, &attempt, 0)].into()));
    assert!(ports.claim.release(&partition.giving_back(attempt, admitted.fence, 1)).await?);
    assert!(matches!(partition.claim(2, ClaimCondition::ItemExists).await?.1, Admission::Admitted(_)));
    Ok(())
}

/// The returned tokens include those of earlier attempts that were not removed.
pub async fn claim_returns_all_tokens_with_new_ones(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (one, first) = partition.admitted(0).await?;
    let mint = |attempt: &AttemptId| Token::minted_by_attempt(partition.id, attempt, 0);
    assert_eq!(first.tokens, Tokens::Listed([partition.token.clone(), mint(&one)].into()));
    ports.claim.release(&partition.giving_back(one, first.fence, 1)).await?;
    let (two, second) = partition.admitted(2).await?;
    assert_eq!(second.tokens, Tokens::Listed([partition.token.clone(), mint(&one), mint(&two)].into()));
    Ok(())
}

/// Unreleased claims leave only the tokens that they created.
pub async fn tokens_are_added_within_the_capacity(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    for (round, requires) in [partition.needs_token(), ClaimCondition::ItemExists, ClaimCondition::Always]
        .into_iter()
        .cycle()
        .take(6)
        .enumerate()
    {
        let after = i64::try_from(round).unwrap_or(i64::MAX) * LEASE;
        let attempt = AttemptId::from_uuid(ports.host.fresh_id());
        let claim = Claim { max_tokens: 2, ..partition.request(attempt, after, requires) };
        let Admission::Admitted(admitted) = asked(ports, claim.clone()).await? else {
            panic!("round {round}: the previous lease has expired");
        };
        let Tokens::Listed(tokens) = admitted.tokens else { panic!("there is a ledger") };
        assert_eq!(tokens.len(), (round + 2).min(3));
        assert_eq!(tokens.contains(&claim.new_tokens[0]), round < 2);
    }
    Ok(())
}

/// All other claims are answered with "busy".
pub async fn concurrent_claims_admit_exactly_one(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let answers = join_all((0..16).map(|_| partition.claim(0, partition.needs_token()))).await;
    let mut admitted = 0;
    for answer in answers {
        match answer?.1 {
            Admission::Admitted(_) => admitted += 1,
            Admission::Busy { until } => assert_eq!(until, sample::later(partition.now, LEASE)),
            other @ (Admission::Duplicate | Admission::Moved { .. }) => {
                panic!("the token exists: {other:?}")
            }
        }
    }
    assert_eq!(admitted, 1);
    Ok(())
}

/// After the lease has expired, another worker can claim the partition.
pub async fn held_partition_is_busy_until_lease_expires(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (_, first) = partition.admitted(0).await?;
    for requires in [partition.needs_token(), ClaimCondition::ItemExists, ClaimCondition::Always] {
        let (_, answer) = partition.claim(LEASE - 1, requires).await?;
        assert_eq!(answer, Admission::Busy { until: sample::later(partition.now, LEASE) });
    }
    let (_, second) = partition.admitted(LEASE).await?;
    assert!(second.fence > first.fence);
    Ok(())
}

/// A later release by the finished attempt has no effect.
pub async fn finished_attempt_does_not_block_claim(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (one, first) = partition.admitted(0).await?;
    let other = sample::attempt(ports.host);
    for requires in [partition.needs_token(), ClaimCondition::ItemExists, ClaimCondition::Always] {
        let after = |finished| {
            let request = partition.request(sample::attempt(ports.host), 1, requires.clone());
            Claim { supersedes: Some(finished), ..request }
        };
        let answer = asked(ports, after(other)).await?;
        assert_eq!(answer, Admission::Busy { until: sample::later(partition.now, LEASE) });
    }
    let request = partition.request(other, 1, partition.needs_token());
    let answer = asked(ports, Claim { supersedes: Some(one), ..request }).await?;
    let Admission::Admitted(second) = answer else { panic!("not admitted: {answer:?}") };
    assert_eq!(second.fence, first.fence + 1);
    assert!(!ports.claim.release(&partition.giving_back(one, first.fence, 2)).await?);
    assert!(ports.claim.release(&partition.giving_back(other, second.fence, 2)).await?);
    let absent = ClaimCondition::TokenPresent(Token::minted_at_entry(partition.id, ports.host.fresh_id()));
    let request = Claim { supersedes: Some(other), ..partition.request(one, 3, absent) };
    assert_eq!(asked(ports, request).await?, Admission::Duplicate);
    Ok(())
}

/// A message without its token is a duplicate, whichever worker holds the partition.
pub async fn missing_token_is_duplicate_while_partition_is_held(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    partition.admitted(0).await?;
    let absent = ClaimCondition::TokenPresent(Token::minted_at_entry(partition.id, ports.host.fresh_id()));
    assert!(is_duplicate(&partition.claim(1, absent).await?));
    Ok(())
}

/// A worker that no longer holds the partition releases neither the lease nor a token.
pub async fn a_zombie_releases_nothing(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (zombie, old) = partition.admitted(0).await?;
    let (current, new) = partition.admitted(LEASE).await?;
    let grab = |attempt, fence| Release {
        remove: [partition.token.clone()].into(),
        ..partition.giving_back(attempt, fence, LEASE + 1)
    };
    for (attempt, fence) in [(zombie, old.fence), (zombie, new.fence), (current, old.fence)] {
        assert!(!ports.claim.release(&grab(attempt, fence)).await?);
    }
    let (_, answer) = partition.claim(LEASE + 2, partition.needs_token()).await?;
    assert_eq!(answer, Admission::Busy { until: sample::later(partition.now, 2 * LEASE) });
    assert!(ports.claim.release(&grab(current, new.fence)).await?);
    Ok(())
}

/// The attempt holds the lease itself, and its first fence is outdated.
pub async fn attempt_is_readmitted_after_lost_reply(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (attempt, first) = partition.admitted(0).await?;
    let again = asked(ports, partition.request(attempt, 1, partition.needs_token())).await?;
    let Admission::Admitted(again) = again else { panic!("not admitted: {again:?}") };
    assert!(again.fence > first.fence);
    assert!(!ports.claim.release(&partition.giving_back(attempt, first.fence, 2)).await?);
    assert!(ports.claim.release(&partition.giving_back(attempt, again.fence, 2)).await?);
    Ok(())
}

/// Tokens that the release does not name are removed too. The item is kept for some time.
pub async fn ended_partition_loses_all_tokens(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (attempt, admitted) = partition.admitted(0).await?;
    let release = Release { ended: true, ..partition.giving_back(attempt, admitted.fence, 1) };
    assert!(ports.claim.release(&release).await?);
    for token in [partition.token.clone(), Token::minted_by_attempt(partition.id, &attempt, 0)] {
        assert!(is_duplicate(&partition.claim(2, ClaimCondition::TokenPresent(token)).await?));
    }
    assert!(matches!(partition.claim(2, ClaimCondition::ItemExists).await?.1, Admission::Admitted(_)));
    Ok(())
}

/// The tokens of the item are absent as well, so nothing is admitted again.
pub async fn an_expired_item_is_absent(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let lifetime = ITEM_LIFETIME.as_secs();
    assert!(is_duplicate(&partition.claim(lifetime, partition.needs_token()).await?));
    assert!(is_duplicate(&partition.claim(lifetime, ClaimCondition::ItemExists).await?));
    let other = Token::minted_at_entry(partition.id, ports.host.fresh_id());
    ports.grant.grant(partition.id, &[other], sample::later(partition.now, lifetime)).await?;
    assert!(
        is_duplicate(&partition.claim(lifetime, partition.needs_token()).await?),
        "a new grant revived it"
    );
    Ok(())
}

/// A client repeats a request that was not answered in time, and both copies arrive, the second one after the partition
/// was released and its tokens were used.
pub async fn duplicate_claim_changes_nothing(ports: &Ports<'_>) -> CheckResult {
    for requires in [ClaimCondition::ItemExists, ClaimCondition::Always] {
        let partition = Partition::granted(ports).await?;
        let request = partition.request(sample::attempt(ports.host), 0, requires);
        let Admission::Admitted(first) = ports.claim.claim(&request).await? else { panic!("not admitted") };
        let given_back = Release {
            remove: request.new_tokens.iter().cloned().collect(),
            ..partition.giving_back(request.attempt, first.fence, 1)
        };
        assert!(ports.claim.release(&given_back).await?);
        let copy = ports.claim.claim(&request).await?;
        assert!(matches!(copy, Admission::Moved { fence, .. } if fence == first.fence), "{copy:?}");
        assert!(!ports.claim.release(&given_back).await?);
        let token = request.new_tokens[0].clone();
        assert!(is_duplicate(&partition.claim(2, ClaimCondition::TokenPresent(token)).await?), "it was used");
    }
    Ok(())
}

/// The item is kept for years, regardless of grants, and expires soon after the partition has ended.
pub async fn item_outlives_awaited_messages(ports: &Ports<'_>) -> CheckResult {
    const CENTURY: i64 = 100 * 365 * 86_400;
    let lifetime = ITEM_LIFETIME.as_secs();
    for wait in [60 * 86_400, CENTURY] {
        let partition = Partition::granted(ports).await?;
        let until = sample::later(partition.now, wait);
        let (attempt, admitted) = partition.admitted(0).await?;
        let stored = Release { until: Some(until), ..partition.giving_back(attempt, admitted.fence, 1) };
        assert!(ports.claim.release(&stored).await?);
        let other = Token::minted_at_entry(partition.id, ports.host.fresh_id());
        ports.grant.grant(partition.id, &[other], sample::later(partition.now, 2)).await?;
        let is_granted = async |after| {
            ports.check.is_granted(partition.id, &partition.token, sample::later(partition.now, after)).await
        };
        assert!(is_granted(wait + lifetime - 1).await? && !is_granted(wait + lifetime).await?, "{wait}");
        let attempt = sample::attempt(ports.host);
        let claim = Claim { until, ..partition.request(attempt, wait, partition.needs_token()) };
        let Admission::Admitted(admitted) = asked(ports, claim).await? else { panic!("it was forgotten") };
        assert!(ports.claim.release(&partition.giving_back(attempt, admitted.fence, wait + 1)).await?);
        assert!(is_granted(wait + lifetime - 1).await?, "nothing was stored");
        let (attempt, admitted) = partition.admitted(wait + 2).await?;
        let ended = Release { ended: true, ..partition.giving_back(attempt, admitted.fence, wait + 3) };
        assert!(ports.claim.release(&ended).await?);
        assert!(
            is_duplicate(&partition.claim(wait + 3 + lifetime, ClaimCondition::ItemExists).await?),
            "{wait}"
        );
    }
    Ok(())
}

/// An earlier version wrote the item, and it was not changed for a month.
pub async fn expired_item_continues_from_document_fence(ports: &Ports<'_>) -> CheckResult {
    let lifetime = ITEM_LIFETIME.as_secs();
    for is_granted_again in [false, true] {
        let partition = Partition::granted(ports).await?;
        partition.admitted(0).await?;
        if is_granted_again {
            let now = sample::later(partition.now, lifetime);
            ports.grant.grant(partition.id, std::slice::from_ref(&partition.token), now).await?;
        }
        let attempt = sample::attempt(ports.host);
        let request = partition.request(attempt, lifetime, ClaimCondition::Always);
        let claim = Claim { fence: 7, above: 7, ..request };
        let Admission::Admitted(admitted) = asked(ports, claim).await? else { panic!("not admitted") };
        assert_eq!(admitted.fence, 9, "an earlier version of the document does not look like the latest");
    }
    Ok(())
}

/// This holds while the partition is free and while it is held: a grant does not end a lease.
pub async fn granting_again_changes_nothing(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let (attempt, admitted) = partition.admitted(0).await?;
    ports.grant.grant(partition.id, std::slice::from_ref(&partition.token), partition.now).await?;
    assert!(matches!(partition.claim(1, ClaimCondition::ItemExists).await?.1, Admission::Busy { .. }));
    let Tokens::Listed(tokens) = admitted.tokens else { panic!("there is a ledger") };
    assert_eq!(tokens.len(), 2, "the token and one mint");
    assert!(ports.claim.release(&partition.giving_back(attempt, admitted.fence, 1)).await?);
    Ok(())
}

/// A call grants and revokes each of its tokens, whether or not the partition has others.
pub async fn tokens_of_several_grants_add_up(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::granted(ports).await?;
    let mint = || Token::minted_at_entry(partition.id, ports.host.fresh_id());
    let (kept, revoked) = ([mint(), mint()], [mint(), mint()]);
    for tokens in [&kept, &revoked] {
        ports.grant.grant(partition.id, tokens, partition.now).await?;
    }
    let granted = async |tokens: &[Token]| {
        let looks = tokens.iter().map(|token| ports.check.is_granted(partition.id, token, partition.now));
        try_join_all(looks).await
    };
    let first = std::slice::from_ref(&partition.token);
    for tokens in [first, &kept, &revoked] {
        assert!(granted(tokens).await?.into_iter().all(|is_granted| is_granted));
    }
    ports.grant.revoke(partition.id, &revoked, partition.now).await?;
    assert_eq!(granted(&revoked).await?, [false, false]);
    assert_eq!(granted(&kept).await?, [true, true]);
    let begun = Partition::unknown(ports);
    let tokens = [begun.token.clone(), Token::minted_at_entry(begun.id, ports.host.fresh_id())];
    assert!(ports.grant.begin(begun.id, &tokens, begun.now).await?);
    for token in &tokens {
        assert!(ports.check.is_granted(begun.id, token, begun.now).await?);
    }
    Ok(())
}

/// This holds for any tokens. After the expiry of the item, a new one is created.
pub async fn repeated_begin_restores_no_token(ports: &Ports<'_>) -> CheckResult {
    let partition = Partition::unknown(ports);
    let token = std::slice::from_ref(&partition.token);
    assert!(ports.grant.begin(partition.id, token, partition.now).await?);
    assert!(ports.grant.begin(partition.id, token, partition.now).await?, "it is there");
    let (attempt, admitted) = partition.admitted(0).await?;
    let release = partition.giving_back(attempt, admitted.fence, 1);
    let remove = BTreeSet::from([partition.token.clone()]);
    assert!(ports.claim.release(&Release { remove, ..release }).await?);
    assert!(!ports.grant.begin(partition.id, token, partition.now).await?, "it was used");
    assert!(is_duplicate(&partition.claim(2, partition.needs_token()).await?), "it was used");
    let later = ITEM_LIFETIME.as_secs() + 2;
    assert!(ports.grant.begin(partition.id, token, sample::later(partition.now, later)).await?);
    partition.admitted(later).await?;
    Ok(())
}

/// The check changes nothing. An unknown or expired partition has no tokens.
pub async fn token_is_granted_until_its_release(ports: &Ports<'_>) -> CheckResult {
    let is_granted = async |partition: &Partition<'_>, after| {
        ports.check.is_granted(partition.id, &partition.token, sample::later(partition.now, after)).await
    };
    assert!(!is_granted(&Partition::unknown(ports), 0).await?);
    let partition = Partition::granted(ports).await?;
    assert!(is_granted(&partition, 0).await?);
    let (attempt, admitted) = partition.admitted(0).await?;
    assert!(is_granted(&partition, 1).await?, "somebody is inside");
    let remove = [partition.token.clone()].into();
    let release = Release { remove, ..partition.giving_back(attempt, admitted.fence, 2) };
    assert!(ports.claim.release(&release).await?);
    assert!(!is_granted(&partition, 3).await?);
    let expired = Partition::granted(ports).await?;
    assert!(!is_granted(&expired, ITEM_LIFETIME.as_secs()).await?);
    Ok(())
}

/// The other tokens stay, and a holder keeps its lease. An unknown partition does not begin.
pub async fn revoked_token_admits_nothing(ports: &Ports<'_>) -> CheckResult {
    let unknown = Partition::unknown(ports);
    ports.grant.revoke(unknown.id, std::slice::from_ref(&unknown.token), unknown.now).await?;
    assert!(is_duplicate(&unknown.claim(0, ClaimCondition::ItemExists).await?));
    let partition = Partition::granted(ports).await?;
    let other = [Token::minted_at_entry(partition.id, ports.host.fresh_id())];
    ports.grant.grant(partition.id, &other, partition.now).await?;
    let (attempt, admitted) = partition.admitted(0).await?;
    for _ in 0..2 {
        ports.grant.revoke(partition.id, &other, sample::later(partition.now, 1)).await?;
    }
    let is_granted = async |token| ports.check.is_granted(partition.id, token, partition.now).await;
    assert!(is_granted(&partition.token).await?);
    assert!(!is_granted(&other[0]).await?);
    assert!(ports.claim.release(&partition.giving_back(attempt, admitted.fence, 2)).await?);
    Ok(())
}
