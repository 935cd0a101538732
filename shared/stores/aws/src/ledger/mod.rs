//! DynamoDB adapters: the partition ledger and the memory of processed messages.
//!
//! - [`Ledger`]: [`dedup::ClaimPartition`], [`dedup::GrantTokens`] and [`dedup::CheckTokens`] on one item per
//!   partition. Every call that changes something is one `UpdateItem` whose condition says what [`dedup::ledger::Item`] says, so there is nothing to lock and nothing
//!   between reading and writing;
//! - [`Processed`]: [`dedup::RememberProcessed`], one item per key.
//!
//! Nothing here scans or queries: every call names the one item that it is about, and costs the same however many
//! there are.
//!
//! # The ledger's items
//! | attribute | type | meaning |
//! | --- | --- | --- |
//! | `partition_id` | S | the partition; the partition key |
//! | `owner`, `lease_until` | S, N | the attempt inside and, in nanoseconds since 1970, when its lease ends; both absent when nobody is inside |
//! | `fence` | N | claims so far; absent before the first |
//! | `tokens` | SS | the messages still admitted; absent when there is none, since DynamoDB has no empty sets |
//! | `expires_at` | N | in seconds since 1970, when the item is to be forgotten; the table's TTL attribute |
//!
//! DynamoDB deletes an expired item within a few days
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html>); until then every call takes it for
//! absent by itself. The expiry is kept in whole seconds, as TTL asks for, rounded up: an item is forgotten up to a
//! second late and never early.
//!
//! # Sizes
//! An item may have 400 KB
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>), which is room for more than
//! 8,000 tokens; a partition has one for each message that it waits for. The expressions have a fixed length, far
//! below the 4 KB allowed: tokens travel as one value.

mod expression;
mod item;
mod partitions;
mod processed;
mod table;

pub use item::{EXPIRES as EXPIRES_AT, MalformedItem, PARTITION as LEDGER_KEY};
pub use partitions::{LEDGER_TABLE, Ledger};
pub use processed::{KEY as PROCESSED_KEY, PROCESSED_TABLE, Processed};
