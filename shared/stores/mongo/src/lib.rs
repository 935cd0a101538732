//! MongoDB adapters: saga documents, views, transactional sessions with their records, and studies.
//!
//! In reading order:
//! - [`settings`]: what may be set, and an address whose password never shows;
//! - [`connect`]: connecting, and what is said when that fails;
//! - `store`: [`Mongo`], which implements the ports;
//! - `names`: the collections and the fields that queries use;
//! - `value`, `entry`, `document`: what is stored, to and from BSON;
//! - `transaction`: several writes that are made together or not at all;
//! - `pipeline`: the changes of a record with an outbox, as update pipelines;
//! - `reply`: what the answer to a batch says of each of its statements;
//! - `fault`: what goes wrong, and whether trying again is of use;
//! - `saga`, `outbox`, `views`, `sessions`, `records`, `progress`, `reading`, `studies`, `files`, `history`: the ports;
//! - `indexes`, [`migrate`]: the indexes, and bringing a database up to them.
//!
//! # What it rests on
//! A replica set, MongoDB 6 or later. A saga's document is changed by one conditional write of one document, its
//! outbox included, and never needs a transaction; sessions use one, and so do studies, which are stored while their file
//! has its fence. Writes are acknowledged by a majority,
//! and documents are read as a majority has them, so that nothing is acted upon that a failover could take back.
//!
//! # What it does not do
//! It does not repeat a write whose answer was lost, except where the driver can do so safely: such a write is
//! reported as [`messages::StoreError::Unavailable`], and the caller finds out.

pub mod connect;
mod document;
mod duplicates;
mod entry;
mod failures;
mod fault;
mod files;
mod history;
mod indexes;
pub mod migrate;
mod names;
mod outbox;
mod pipeline;
mod place;
mod progress;
mod reading;
mod records;
mod reply;
mod saga;
mod sessions;
pub mod settings;
mod store;
mod studies;
mod transaction;
mod value;
mod views;

pub use connect::ConnectError;
pub use migrate::{IndexReport, Migration, OnDifference, Outcome};
pub use mongodb::Client;
pub use names::collections;
pub use outbox::Outbox;
pub use settings::{Settings, Uri};
pub use store::{Connect, Mongo};
