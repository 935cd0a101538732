//! Messages that take effect once.
//!
//! Seven mechanisms, each usable alone:
//!
//! | mechanism | guarantee | example |
//! | --- | --- | --- |
//! | [durable saga](saga) | Each event changes the state once, and each effect of the change is performed | `saga.rs` |
//! | [messages between sagas](saga::instance) | An event, request or reply takes effect once in another saga | `two_sagas.rs` |
//! | steps (module `steps`) | The steps of a list are performed, or undone in reverse order | `steps.rs` |
//! | [token-based deduplication](dedup::entity) | A duplicate is detected at any age, for entities without a saga | `deduplication.rs` |
//! | [idempotent handler](dedup::guard()) | A command is answered once, although it may be handled twice | `handler.rs` |
//! | [transactional session](outbox::session) | Data and messages of a request are stored together or not at all | `session.rs`, `session_mongo.rs` |
//! | [outbox] | A stored message is sent, with backoff, and set aside if it can never be sent | `outbox.rs` |
//!
//! The guarantees hold if messages are duplicated, delayed or reordered, if processes crash between any two steps, and
//! if several workers compete. The folder `examples` has one program for each mechanism.
//!
//! # Parts
//! - [`messages`](mod@messages), [`dedup`], [`outbox`] and [`saga`]: the engine, without a runtime or a store;
//! - feature `steps` (module `steps`, a default): sagas as lists of steps with compensation;
//! - feature `sqlite` (module `sqlite`): all stores and queues in one SQLite database;
//! - feature `local` (module `local`, the default): all functions of an application in one process;
//! - feature `aws` (module `aws`): the ledger on DynamoDB and the queues on SQS;
//! - feature `mongo` (module `mongo`): documents, views, sessions and records on MongoDB;
//! - feature `dynamo` (module `dynamo`): documents, views, sessions, records and history on DynamoDB, without MongoDB;
//! - features `env-dynamodb` and `env-mongodb` (module `env`): the settings of the environment, which select and open the
//!   adapters, with or without those of MongoDB;
//! - feature `lambda` (modules `lambda` and `telemetry`): the functions on AWS Lambda, with logs, metrics and traces;
//! - feature `operate` (module `operate`): effects, failures, health and instances of any system for its operators, with
//!   HTTP routes;
//! - feature `tools` (module `tools`): a SAM template of the functions, provisioning on local servers, and more for
//!   developers;
//! - feature `contracts` (module `contracts`): one contract suite per group of ports, for the adapters of another store or
//!   queue, and a host with manual time;
//! - feature `simulation` (module `simulation`): seeded schedules of faults, for tests;
//! - feature `model` (module `model`): every interleaving of a small workload, for tests.
//!
//! # DynamoDB as the only database
//!
//! With the features `dynamo` and `aws`, a system needs one table for its documents, one for its ledger, and SQS:
//!
//! ```no_run
//! # #[cfg(feature = "dynamo")]
//! # async fn on_dynamodb(engine: onceward::saga::Engine) -> onceward::saga::Engine {
//! use std::sync::Arc;
//!
//! use onceward::SystemHost;
//! use onceward::aws::ledger::Ledger;
//! use onceward::dynamo::{Client, Dynamo, Settings};
//! use onceward::saga::{Engine, Partitions};
//!
//! let client = Client::new(&onceward::aws::config().await);
//! let ledger = Arc::new(Ledger::new(client.clone(), "tickets", "tickets-ledger"));
//! let dynamo = Dynamo::new(client, Settings::new("tickets"), Arc::new(SystemHost));
//! Engine {
//!     stores: Ok(dynamo.stores()),
//!     partitions: Ok(Partitions::of(Arc::clone(&ledger))),
//!     check_tokens: Ok(ledger),
//!     history: Some(Arc::new(dynamo)),
//!     ..engine
//! }
//! # }
//! ```
//!
//! The observer `saga::history::Recorder` writes the history.
//!
//! # Stability
//!
//! Version 0.1 may change its interface with each minor version. The stored formats stay readable, and messages of
//! earlier versions are accepted. The manifest states the minimum supported Rust version. An increase of this version
//! is a minor version of the crate.

pub use ::messages;
pub use {async_trait::async_trait, dedup, jiff, outbox, saga, serde, serde_json, uuid};

#[cfg(feature = "aws")]
pub use aws;
#[cfg(feature = "env")]
pub use backend as env;
#[cfg(feature = "contracts")]
pub use contracts;
#[cfg(feature = "dynamo")]
pub use dynamo;
#[cfg(feature = "sqlite")]
pub use embedded as sqlite;
#[cfg(feature = "lambda")]
pub use lambda;
#[cfg(feature = "local")]
pub use local;
#[cfg(feature = "model")]
pub use model;
#[cfg(feature = "mongo")]
pub use mongo;
#[cfg(feature = "operate")]
pub use operate;
#[cfg(feature = "simulation")]
pub use simulation;
#[cfg(feature = "steps")]
pub use steps;
#[cfg(any(feature = "aws", feature = "sqlite"))]
pub use system_host::{AdvancedHost, SystemHost};
#[cfg(feature = "tools")]
pub use system_tools as tools;
#[cfg(feature = "lambda")]
pub use telemetry;

/// Defines the messages of a queue; see [`messages::messages!`](macro@messages::messages).
#[macro_export]
macro_rules! messages {
    ($($definition:tt)*) => {
        $crate::messages::messages! {
            #![crate = "onceward::messages::macros::serde"]
            $($definition)*
        }
    };
}

pub mod prelude {
    //! The items that most applications need.

    pub use std::sync::Arc;

    pub use dedup::{Entities, Entry, Handler, HandlerError, Receipts};
    pub use jiff::{SignedDuration, Timestamp};
    pub use messages::{
        Consumer, Host, Message, PartitionKey, Queue, QueueSpec, Reporter, StoreError, Token,
    };
    pub use outbox::session::{CONTROL, CommitError};
    pub use outbox::{Key, View};
    pub use saga::{
        Decision, Engine, EntryPoint, Event, Function, IdempotentRequest, Instance, MissingSetting,
        OpenSession, Recurrence, Requester, SAGA, Saga, Service, Source, System,
    };

    pub use crate::{async_trait, messages};
}
