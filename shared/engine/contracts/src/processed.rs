//! The contract of [`ProcessedMessages`].

use dedup::ProcessedMessages;
use messages::Host;

use crate::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// The store.
    pub store: &'a dyn ProcessedMessages,
    /// Ids and time.
    pub host: &'a dyn Host,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    key_is_remembered_until_its_expiry(ports).await?;
    remembering_again_moves_the_expiry(ports).await?;
    different_keys_are_independent(ports).await
}

/// The expiry is effective even if the store deletes later.
pub async fn key_is_remembered_until_its_expiry(ports: &Ports<'_>) -> CheckResult {
    let (key, now) = (ports.host.fresh_id().to_string(), sample::now(ports.host));
    assert!(!ports.store.is_remembered(&key, now).await?, "nothing is remembered at first");
    ports.store.remember(&key, sample::later(now, 60)).await?;
    assert!(ports.store.is_remembered(&key, now).await?);
    assert!(ports.store.is_remembered(&key, sample::later(now, 59)).await?);
    assert!(!ports.store.is_remembered(&key, sample::later(now, 60)).await?);
    Ok(())
}

/// The later expiry is effective.
pub async fn remembering_again_moves_the_expiry(ports: &Ports<'_>) -> CheckResult {
    let (key, now) = (ports.host.fresh_id().to_string(), sample::now(ports.host));
    ports.store.remember(&key, sample::later(now, 60)).await?;
    ports.store.remember(&key, sample::later(now, 120)).await?;
    assert!(ports.store.is_remembered(&key, sample::later(now, 90)).await?);
    Ok(())
}

/// Different keys are independent. For example, two handlers of a message have different keys.
pub async fn different_keys_are_independent(ports: &Ports<'_>) -> CheckResult {
    let (id, now) = (ports.host.fresh_id(), sample::now(ports.host));
    ports.store.remember(&format!("one:{id}"), sample::later(now, 60)).await?;
    assert!(!ports.store.is_remembered(&format!("two:{id}"), now).await?);
    Ok(())
}
