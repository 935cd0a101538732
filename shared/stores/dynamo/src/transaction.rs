//! Several conditional writes that take effect together or not at all.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::builders::{TransactWriteItemBuilder, UpdateBuilder};
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};
use jiff::Timestamp;
use messages::StoreError;
use outbox::records::KEPT_AFTER_EXPIRY;

use crate::Dynamo;
use crate::error::{Limit, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_ITEMS};
use crate::item::{self, Item, number, text};
use crate::names::attributes::{CONTENT, EXPIRES, KEY, REVISION, STAMP};

/// One step of a transaction.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Creates an item that must be absent.
    Create(Item),
    /// Replaces an item with this stamp; `None` if there must be no item.
    Replace { item: Item, stamp: Option<String> },
    /// Stores an item unconditionally.
    Put(Item),
    /// Deletes an item, if it exists.
    Delete { key: String },
    /// Checks the revision of an item; 0 if there must be no item.
    Check { key: String, revision: u64 },
    /// Stores the next revision of a record, if the stored revision is still the one that was read.
    Write { key: String, read: Option<u64>, writes: u32, content: Content },
    /// A write of the application to another table. DynamoDB checks its size.
    Own(Box<TransactWriteItem>),
}

/// The content of a record as it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    /// The body as JSON; `None` to remove the record.
    pub(crate) body: Option<String>,
    pub(crate) expires_at: Option<Timestamp>,
}

impl Content {
    /// Returns the second from which TTL may delete the record.
    pub(crate) fn deleted_from(&self) -> Option<i64> {
        self.expires_at.map(|at| at.as_second().saturating_add(KEPT_AFTER_EXPIRY.as_secs()))
    }
}

/// The outcome of a transaction.
pub(crate) enum Outcome {
    Done,
    /// The conditions of these steps do not hold.
    Refused(BTreeSet<usize>),
}

impl Step {
    fn size(&self) -> usize {
        match self {
            Self::Create(item) | Self::Replace { item, .. } | Self::Put(item) => item::size(item),
            Self::Check { key, .. } | Self::Delete { key } => key.len(),
            Self::Write { key, content, .. } => key.len() + content.body.as_deref().map_or(0, str::len),
            Self::Own(_) => 0,
        }
    }

    fn check_limits(&self, doing: &str) -> Result<(), StoreError> {
        let mut item = match self {
            Self::Create(item) | Self::Replace { item, .. } | Self::Put(item) => item.clone(),
            Self::Check { key, .. } | Self::Write { key, .. } | Self::Delete { key } => item::new(key),
            Self::Own(_) => return Ok(()),
        };
        if let Self::Write { content: Content { body: Some(body), .. }, .. } = self {
            item::set(&mut item, CONTENT, text(body));
        }
        item::check(&item, doing)
    }
}

impl Dynamo {
    /// Makes a transaction. Conflicts with other writers are repeated. The client repeats a call whose response was lost
    /// with the same token, so it takes effect once.
    pub(crate) async fn transact(&self, steps: &[Step], doing: &str) -> Result<Outcome, StoreError> {
        check_limits(steps, doing)?;
        let mut round = 0;
        loop {
            let mut request = self.client.transact_write_items();
            for step in steps {
                request = request.transact_items(self.request(step, doing)?);
            }
            let Err(error) = request.send().await else { return Ok(Outcome::Done) };
            let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) =
                error.as_service_error()
            else {
                return Err(self.failed(doing, &error));
            };
            let codes: Vec<&str> = canceled
                .cancellation_reasons()
                .iter()
                .map(|reason| reason.code().unwrap_or_default())
                .collect();
            let refused: BTreeSet<usize> =
                (0..).zip(&codes).filter(|(_, code)| is_refusal(code)).map(|(n, _)| n).collect();
            if !refused.is_empty() {
                return Ok(Outcome::Refused(refused));
            }
            if !codes.iter().any(|code| passes(code)) {
                return Err(self.failed(doing, &error));
            }
            self.wait(&mut round, doing).await?;
        }
    }

    fn request(&self, step: &Step, doing: &str) -> Result<TransactWriteItem, StoreError> {
        let (table, request) = (&self.settings.table, TransactWriteItem::builder());
        let built = match step {
            Step::Own(write) => return Ok(write.as_ref().clone()),
            Step::Create(item) => self.put_request(item, None).map(|put| request.put(put)),
            Step::Replace { item, stamp } => {
                self.put_request(item, stamp.as_deref()).map(|put| request.put(put))
            }
            Step::Put(item) => {
                let put = Put::builder().table_name(table).set_item(Some(item.clone()));
                put.build().map(|put| request.put(put))
            }
            Step::Delete { key } => {
                let delete = Delete::builder().table_name(table).key(KEY, text(key));
                delete.build().map(|delete| request.delete(delete))
            }
            Step::Check { key, revision } => {
                let check = ConditionCheck::builder().table_name(table).key(KEY, text(key));
                let check = match *revision {
                    0 => check.condition_expression(ABSENT).expression_attribute_names("#key", KEY),
                    read => check
                        .condition_expression(UNCHANGED)
                        .expression_attribute_names("#revision", REVISION)
                        .expression_attribute_values(":read", number(read)),
                };
                check.build().map(|check| request.condition_check(check))
            }
            Step::Write { key, read, writes, content } => {
                let update = self.record_update(key, *writes, content);
                let update = match *read {
                    None => update,
                    Some(0) => update.condition_expression(ABSENT).expression_attribute_names("#key", KEY),
                    Some(read) => update
                        .condition_expression(UNCHANGED)
                        .expression_attribute_values(":read", number(read)),
                };
                update.build().map(|update| request.update(update))
            }
        };
        built.map(TransactWriteItemBuilder::build).map_err(|error| StoreError::unusable(doing, error))
    }

    /// Returns the update of a record to its next revision.
    fn record_update(&self, key: &str, writes: u32, content: &Content) -> UpdateBuilder {
        let (mut set, mut remove) = (vec!["#stamp = :stamp"], Vec::new());
        let mut update = Update::builder()
            .table_name(&self.settings.table)
            .key(KEY, text(key))
            .expression_attribute_names("#content", CONTENT)
            .expression_attribute_names("#expires", EXPIRES)
            .expression_attribute_names("#stamp", STAMP)
            .expression_attribute_names("#revision", REVISION)
            .expression_attribute_values(":stamp", text(self.stamp()))
            .expression_attribute_values(":writes", number(writes));
        match &content.body {
            Some(body) => {
                set.push("#content = :content");
                update = update.expression_attribute_values(":content", text(body));
            }
            None => remove.push("#content"),
        }
        match content.deleted_from() {
            Some(second) => {
                set.push("#expires = :expires");
                update = update.expression_attribute_values(":expires", number(second));
            }
            None => remove.push("#expires"),
        }
        let remove = if remove.is_empty() { String::new() } else { format!(" REMOVE {}", remove.join(", ")) };
        update.update_expression(format!("SET {}{remove} ADD #revision :writes", set.join(", ")))
    }

    fn put_request(
        &self,
        item: &Item,
        stamp: Option<&str>,
    ) -> Result<Put, aws_sdk_dynamodb::error::BuildError> {
        let mut item = item.clone();
        item::set(&mut item, STAMP, text(self.stamp()));
        let put = Put::builder().table_name(&self.settings.table).set_item(Some(item));
        match stamp {
            None => put.condition_expression(ABSENT).expression_attribute_names("#key", KEY),
            Some(stamp) => put
                .condition_expression("#stamp = :read")
                .expression_attribute_names("#stamp", STAMP)
                .expression_attribute_values(":read", text(stamp)),
        }
        .build()
    }
}

const ABSENT: &str = "attribute_not_exists(#key)";
const UNCHANGED: &str = "#revision = :read";

fn check_limits(steps: &[Step], doing: &str) -> Result<(), StoreError> {
    steps.iter().try_for_each(|step| step.check_limits(doing))?;
    let bytes = steps.iter().map(Step::size).sum();
    if steps.len() > MAX_TRANSACTION_ITEMS {
        return Err(StoreError::unusable(doing, Limit::TransactionItems(steps.len())));
    }
    if bytes > MAX_TRANSACTION_BYTES {
        return Err(StoreError::unusable(doing, Limit::TransactionSize(bytes)));
    }
    Ok(())
}

fn is_refusal(code: &str) -> bool {
    code == "ConditionalCheckFailed"
}

/// Returns `true` for the reasons of a cancelled transaction after which a repetition may succeed
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>).
fn passes(code: &str) -> bool {
    matches!(code, "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_transaction_are_named() {
        let check = |n: usize| Step::Check { key: format!("record#{n}"), revision: 1 };
        let steps: Vec<Step> = (0..=MAX_TRANSACTION_ITEMS).map(check).collect();
        let error = check_limits(&steps, "committing").unwrap_err();
        assert!(
            !error.is_retryable() && error.chain().contains("100 items for a transaction"),
            "{}",
            error.chain()
        );
        assert!(check_limits(&steps[1..], "committing").is_ok());
        let write = |n: usize| Step::Write {
            key: format!("record#{n}"),
            read: None,
            writes: 1,
            content: Content { body: Some("x".repeat(300_000)), expires_at: None },
        };
        let steps: Vec<Step> = (0..14).map(write).collect();
        let error = check_limits(&steps, "committing").unwrap_err();
        assert!(error.chain().contains("4194304 bytes for a transaction"), "{}", error.chain());
    }
}
