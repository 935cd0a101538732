//! MongoDB adapters: saga documents, views, and transactional sessions with their records.
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
//! - `saga_documents`, `outboxes`, `views`, `sessions`, `records`, `failures`, `history`: the ports;
//! - `work`, `application`: the application's own collections in the same transactions;
//! - `indexes`, [`migrate`]: the indexes, and their creation;
//! - `search`, with the feature of that name: the ports of the search import.
//!
//! # Requirements
//! A replica set with MongoDB 6 or later. A saga document is changed by one conditional write of one
//! document, including its outbox, so it needs no transaction. Sessions use transactions. A majority acknowledges all
//! writes, and reads return only data that a majority has, so that we never act on data that a failover could roll
//! back.
//!
//! # Limits
//! A write whose reply was lost is not repeated, except where the driver can do so safely. It is reported as
//! [`messages::StoreError::Unavailable`], and the caller has to determine its outcome.
//!
//! # Example
//!
//! The stores of an engine:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use mongo::settings::{Settings, Uri};
//! use mongo::{Mongo, OnDifference};
//! use saga::{Engine, Stores};
//!
//! # async fn on_mongodb(engine: Engine) -> Result<Engine, Box<dyn std::error::Error>> {
//! let settings = Settings::new("orders", Uri::new("mongodb://localhost/?replicaSet=rs0"));
//! let mongo = Arc::new(Mongo::connect(&settings).await?);
//! mongo.ensure_indexes(OnDifference::Report).await?;
//! let stores = Stores::of(&mongo, mongo.saga_outbox(), mongo.session_outbox());
//! Ok(Engine { stores: Ok(stores), ..engine })
//! # }
//! ```

mod application;
pub mod connect;
mod document;
mod driver_error;
mod entry;
mod entry_location;
mod error;
mod failures;
mod history;
mod indexes;
pub mod migrate;
mod names;
mod outboxes;
mod pipeline;
mod records;
mod reply;
mod saga_documents;
#[cfg(feature = "search")]
mod search;
mod sessions;
pub mod settings;
mod store;
mod transaction;
mod value;
mod views;
mod work;

pub use application::WithWork;
pub use connect::ConnectError;
pub use indexes::{OnDifference, Outcome};
pub use migrate::{IndexReport, Migration};
pub use mongodb::{self, Client};
pub use names::collection_name;
pub use outbox::session::WorkVerdict;
pub use outboxes::Outbox;
pub use settings::{Settings, Uri};
pub use store::{Connect, Mongo};
pub use work::SessionWork;

/// The collections, by their names in the database of the search import; see [`collection_name`].
pub mod collections {
    pub use crate::names::collections::*;
    #[cfg(feature = "search")]
    pub use crate::search::names::collections::*;
}
