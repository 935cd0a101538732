//! DynamoDB adapters: the partition ledger and the memory of processed messages.
//!
//! - [`Ledger`]: [`dedup::ClaimPartition`], [`dedup::GrantTokens`] and [`dedup::CheckTokens`] on one item per
//!   partition. Every call that changes an item is one `UpdateItem` with the conditions of [`dedup::ledger::Item`], so
//!   no lock is needed and nothing can happen between reading and writing;
//! - [`ProcessedTable`]: [`dedup::ProcessedMessages`], one item per key.
//!
//! No call scans or queries: every call names one item, and its cost does not depend on the number of items.
//!
//! # The ledger's items
//! | attribute | type | meaning |
//! | --- | --- | --- |
//! | `partition_id` | S | the partition; the partition key |
//! | `owner`, `lease_until` | S, N | the attempt that holds the lease and, in nanoseconds since 1970, the end of the
//! lease; both absent if no attempt holds it |
//! | `fence` | N | the number of claims; absent before the first |
//! | `tokens` | SS | the tokens of admitted messages; absent if there is none, since DynamoDB has no empty sets |
//! | `expires_at` | N | the expiry of the item in seconds since 1970; the table's TTL attribute |
//!
//! DynamoDB deletes an expired item within a few days
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html>); until then every call treats it as
//! absent. The expiry is stored in whole seconds, as TTL requires, rounded up: an item expires up to one second late
//! and never early.
//!
//! # Sizes
//! An item may have 400 KB
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>), which holds more than 8,000
//! tokens; a partition has one for each message that it waits for. The expressions have a fixed length, far below the 4
//! KB allowed: tokens travel as one value.

mod expression;
mod item;
mod partitions;
mod processed;
mod table;

pub use item::{EXPIRES as EXPIRES_AT, MalformedItem, PARTITION as LEDGER_KEY};
pub use partitions::{LEDGER_TABLE, Ledger};
pub use processed::{KEY as PROCESSED_KEY, PROCESSED_TABLE, ProcessedTable};
