//! The partition ledger.

use std::collections::HashMap;

use crate::{Resource, failed};
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use dedup::ledger::Item;
use dedup::{Admission, AdmittedClaim, CheckTokens, Claim, ClaimPartition, GrantTokens, Release, Tokens};
use jiff::Timestamp;
use messages::{PartitionKey, StoreError, Token};

use crate::ledger::expression::{self, Update};
use crate::ledger::item::{self, PARTITION};
use crate::ledger::table;

/// The setting that names the ledger's table, without the prefix of the system (see [`messages::naming::setting`]).
pub const LEDGER_TABLE: &str = "LEDGER_TABLE";

/// The maximum number of attempts of a call at an item that expires. Each retry means that another worker replaced the
/// expired item, or that the clocks of two workers disagree about its last second.
const ROUNDS: usize = 3;

/// The partition ledger, in one table.
#[derive(Debug, Clone)]
pub struct Ledger {
    client: Client,
    system: String,
    table: String,
}

/// The outcome of a conditional update.
enum Outcome {
    /// The update was made. The value is the current item.
    Done(Item),
    /// The condition does not hold. The value is the current item, if it exists.
    Refused(Option<Item>),
}

impl Ledger {
    /// The ledger of a system, in `table`.
    pub fn new(client: Client, system: &str, table: impl Into<String>) -> Self {
        Self { client, system: system.to_owned(), table: table.into() }
    }

    /// Checks that the table exists and has the expected key.
    ///
    /// # Errors
    /// Returns an error if the table is missing or has another key, or the service is unavailable.
    pub async fn check(&self) -> Result<(), StoreError> {
        table::check(&self.client, &self.resource(), PARTITION).await
    }

    fn resource(&self) -> Resource {
        let setting = messages::naming::setting(&self.system, LEDGER_TABLE);
        Resource { kind: "table", name: self.table.clone(), setting }
    }

    async fn update(&self, update: Update, doing: &str) -> Result<Outcome, StoreError> {
        let names = update.names();
        let answer = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PARTITION, AttributeValue::S(update.partition.to_string()))
            .update_expression(update.update)
            .condition_expression(update.condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(update.values))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match answer {
            Ok(output) => Ok(Outcome::Done(read(&output.attributes.unwrap_or_default(), doing)?)),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    let stored = refused.item().filter(|item| !item.is_empty());
                    Ok(Outcome::Refused(stored.map(|item| read(item, doing)).transpose()?))
                }
                _ => Err(failed(doing, &self.resource(), &error)),
            },
        }
    }
}

fn read(attributes: &HashMap<String, AttributeValue>, doing: &str) -> Result<Item, StoreError> {
    item::read(attributes).map_err(|error| StoreError::unusable(doing, error))
}

fn unsettled(doing: String) -> StoreError {
    StoreError::unavailable(doing, "the item was replaced again and again")
}

#[async_trait]
impl ClaimPartition for Ledger {
    /// Takes one call, also for a refusal: the returned item states the reason. A second call is needed only to replace
    /// an expired item that DynamoDB has not deleted yet, or if the item has no capacity for more tokens. The client
    /// repeats a request that was not answered in time; the fence in its condition lets only one of the duplicates take
    /// effect.
    async fn claim(&self, claim: &Claim) -> Result<Admission, StoreError> {
        let doing = format!("claiming partition {}", claim.partition);
        let mut update = expression::claim(claim);
        for _ in 0..ROUNDS {
            let stored = match self.update(update, &doing).await? {
                Outcome::Done(item) => {
                    let admitted = AdmittedClaim { fence: item.fence, tokens: Tokens::Listed(item.tokens) };
                    return Ok(Admission::Admitted(admitted));
                }
                Outcome::Refused(stored) => stored,
            };
            let expired = stored.as_ref().is_some_and(|item| item.expires_at <= claim.now);
            let is_full = stored.as_ref().is_some_and(|item| !item.has_capacity(claim));
            match Item::claim(stored, claim) {
                (Admission::Admitted(_), _) if expired => update = expression::claim_afresh(claim),
                (Admission::Admitted(_), _) if is_full => update = expression::claim_without_tokens(claim),
                (Admission::Admitted(_), _) => update = expression::claim(claim),
                (refusal, _) => return Ok(refusal),
            }
        }
        Err(unsettled(doing))
    }

    /// Releases the partition in one call. If the response is lost and the client repeats the request, the partition is
    /// already released, and the response is `false`. This is safe, since nothing depends on the answer.
    async fn release(&self, release: &Release) -> Result<bool, StoreError> {
        let doing = format!("releasing partition {}", release.partition);
        match self.update(expression::release(release), &doing).await? {
            Outcome::Done(_) => Ok(true),
            Outcome::Refused(_) => Ok(false),
        }
    }
}

#[async_trait]
impl GrantTokens for Ledger {
    async fn grant(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let doing = format!("granting tokens to partition {partition}");
        for _ in 0..ROUNDS {
            let Outcome::Refused(stored) =
                self.update(expression::grant(partition, tokens, now), &doing).await?
            else {
                return Ok(());
            };
            let update = match stored {
                Some(item) if item.expires_at > now && tokens.is_empty() => return Ok(()),
                Some(item) if item.expires_at > now => {
                    expression::grant_within(partition, tokens, now, item.fence)
                }
                Some(_) | None => expression::grant_afresh(partition, tokens, now),
            };
            if let Outcome::Done(_) = self.update(update, &doing).await? {
                return Ok(());
            }
        }
        Err(unsettled(doing))
    }

    async fn begin(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let doing = format!("beginning partition {partition}");
        match self.update(expression::grant_afresh(partition, tokens, now), &doing).await? {
            Outcome::Done(_) => Ok(true),
            Outcome::Refused(stored) => Ok(Item::create_if_absent(stored, tokens, now).0),
        }
    }

    async fn revoke(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if tokens.is_empty() {
            return Ok(());
        }
        let doing = format!("revoking tokens of partition {partition}");
        self.update(expression::revoke(partition, tokens, now), &doing).await.map(drop)
    }
}

#[async_trait]
impl CheckTokens for Ledger {
    /// Reads consistently: the answer includes tokens that were just granted.
    async fn is_granted(
        &self,
        partition: PartitionKey,
        token: &Token,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let doing = format!("looking for a token of partition {partition}");
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(PARTITION, AttributeValue::S(partition.to_string()))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| failed(&*doing, &self.resource(), &error))?;
        let Some(stored) = answer.item else { return Ok(false) };
        Ok(read(&stored, &doing)?.is_granted(token, now))
    }
}
