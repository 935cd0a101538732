//! MongoDB adapters: saga documents, views, transactional sessions with their records, and studies.
//!
//! In reading order:
//! - [`settings`]: the settings, and an address whose password is never displayed;
//! - `names`: the collections, and the fields that queries use;
//! - `value`, `entry`, `document`: conversion of stored values to and from BSON;
//! - `driver_error`, `error`: failures, and whether a retry may help;
//! - [`connect`]: the client, and the errors of a failed connection;
//! - `pipeline`: changes of a record with an outbox, as update pipelines;
//! - `reply`: the outcome of each statement of a batch, from the server's reply;
//! - `store`: [`Mongo`], which implements the ports;
//! - `transaction`: several writes that are committed together or not at all;
//! - `saga_documents`, `outboxes`, `views`, `sessions`, `records`, `progress`, `parse_attempts`, `studies`, `files`,
//!   `history`: the ports;
//! - `indexes`, [`migrate`]: the indexes, and their creation.
//!
//! # Requirements
//! A replica set with MongoDB 6 or later. A saga document is changed by one conditional write of one document, including
//! its outbox, so it needs no transaction. Sessions use transactions, and so do studies, which are only stored while the
//! attempt holds the fence of the file. A majority acknowledges all writes, and reads return only data that a majority
//! has, so that we never act on data that a failover could roll back.
//!
//! # Limits
//! A write whose reply was lost is not repeated, except where the driver can do so safely. It is reported as
//! [`messages::StoreError::Unavailable`], and the caller has to determine its outcome.

pub mod connect;
mod document;
mod driver_error;
mod duplicates;
mod entry;
mod entry_location;
mod error;
mod failures;
mod files;
mod history;
mod indexes;
pub mod migrate;
mod names;
mod outboxes;
mod parse_attempts;
mod pipeline;
mod progress;
mod records;
mod reply;
mod saga_documents;
mod sessions;
pub mod settings;
mod store;
mod studies;
mod study_key;
mod transaction;
mod value;
mod views;

pub use connect::ConnectError;
pub use indexes::{OnDifference, Outcome};
pub use migrate::{IndexReport, Migration};
pub use mongodb::Client;
pub use names::collections;
pub use outboxes::Outbox;
pub use settings::{Settings, Uri};
pub use store::{Connect, Mongo};
