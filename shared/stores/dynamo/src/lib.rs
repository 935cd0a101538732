//! DynamoDB adapters: saga documents, views, transactional sessions with their records, failures and history, in one
//! table.
//!
//! In reading order:
//! - `names`: keys, attributes and indexes;
//! - `item`: typed access to the attributes of an item, and its size;
//! - [`error`]: limits of DynamoDB, and stored values that cannot be read;
//! - [`table`]: the table with its indexes, for local servers and for templates;
//! - `store`: [`Dynamo`], which implements the ports, and its calls;
//! - `update`: one conditional write of an item that was read before;
//! - `transaction`: several conditional writes that take effect together;
//! - `listing`: queries of an index, with a consistent read of each item;
//! - `entries`: the outbox within an item;
//! - `saga_documents`, `outboxes`, `sessions`, `records`, `views`, `failures`, `operations`, `history`: the ports;
//! - `application`: tables of the application, written with a session.
//!
//! # Items
//! Every item has the key `pk`, which begins with its kind. Items that can change have a `stamp` that changes with each
//! write.
//!
//! | key | item |
//! | --- | --- |
//! | `saga#PARTITION` | the document of a saga with its outbox |
//! | `session#SESSION` | a committed session with its outbox, or the tombstone of an abandoned one |
//! | `record#LENGTH#KIND#ID` | a record of the application |
//! | `view#PARTITION` | a view |
//! | `view_in#LIST#PARTITION` | the copy of a view in a further list |
//! | `failure#ID`, `operation#ID`, `running`, `act#ID` | failures, operations, the lock of the running one, audit entries |
//! | `history#ID` | decisions about messages of one partition |
//!
//! # Consistency
//! A document is changed by one conditional write of one item, including its outbox. A session is committed by one
//! transaction. All reads by key are strongly consistent.
//!
//! Global indexes are eventually consistent. They only propose keys: an entry that was just stored may be missing for a
//! moment, and a later sweep finds it. Before anything is claimed, changed or shown, the item itself is read, and an
//! item that has left its position in the index is skipped. No part concludes from an index that nothing is pending.
//!
//! A write whose response was lost is repeated by the client. The repetition fails its condition, and the returned item
//! has the stamp of this write, so it counts as made. Transactions carry a token for the same purpose.
//!
//! # Limits
//! An item has at most 400 KB, including its outbox. A transaction has at most 100 items and 4 MB. All limits are
//! checked before the call. An exceeded limit is reported as [`error::Limit`].
//!
//! TTL deletes items late, so reads of documents check the retention themselves. An item with pending or exhausted
//! entries has no TTL.
//!
//! # Example
//!
//! The stores and the history of an engine:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use dynamo::{Client, Dynamo, Settings};
//! use saga::Engine;
//!
//! # async fn on_dynamodb(engine: Engine, client: Client) -> Engine {
//! let dynamo = Dynamo::new(client, Settings::new("orders"), engine.host.clone());
//! Engine { stores: Ok(dynamo.stores()), history: Some(Arc::new(dynamo)), ..engine }
//! # }
//! ```

mod application;
mod entries;
pub mod error;
mod failures;
mod history;
mod item;
mod listing;
mod names;
mod operations;
mod outboxes;
mod records;
mod saga_documents;
mod sessions;
mod store;
pub mod table;
mod transaction;
mod update;
mod views;

pub use application::WithWork;
pub use aws_sdk_dynamodb::{self, Client};
pub use names::attributes;
pub use outboxes::Outbox;
pub use store::{Dynamo, STORE_TABLE, Settings};
