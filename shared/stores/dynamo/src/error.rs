//! The causes of errors that this adapter finds itself. The errors of the service are [`aws::failure::Failure`].

pub use aws::ledger::MalformedItem;

/// A limit of DynamoDB that a request exceeds
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>). A retry cannot succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// The size of an item with its outbox.
    #[error("item {key} has {bytes} bytes, and DynamoDB's limit is {MAX_ITEM_BYTES} bytes for an item")]
    ItemSize {
        /// The key of the item.
        key: String,
        /// The size of the item.
        bytes: usize,
    },
    /// The length of a key.
    #[error("a key has {0} bytes, and DynamoDB's limit is {MAX_KEY_BYTES} bytes for a key")]
    KeySize(usize),
    /// The number of items in a transaction.
    #[error(
        "the transaction has {0} items, and DynamoDB's limit is {MAX_TRANSACTION_ITEMS} items for a transaction"
    )]
    TransactionItems(usize),
    /// The size of all items of a transaction.
    #[error(
        "the transaction has {0} bytes, and DynamoDB's limit is {MAX_TRANSACTION_BYTES} bytes for a transaction"
    )]
    TransactionSize(usize),
}

/// The maximum size of an item.
pub const MAX_ITEM_BYTES: usize = 400 * 1_024;
/// The maximum length of a key.
pub const MAX_KEY_BYTES: usize = 2_048;
/// The maximum number of items in a transaction.
pub const MAX_TRANSACTION_ITEMS: usize = 100;
/// The maximum size of a transaction.
pub const MAX_TRANSACTION_BYTES: usize = 4 * 1_024 * 1_024;

/// Other writers changed the same items in every round, or the table was throttled. A retry may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("other writers changed the same items, or the table was throttled, {0} times in a row")]
pub struct WriteContention(pub u32);
