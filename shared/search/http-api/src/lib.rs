//! The HTTP API: routes, JSON requests and responses, problem details (RFC 9457) and the OpenAPI description.
//!
//! - `router` has the routes, and `state` is the state that handlers share;
//! - `extract` authorizes requests, `paging` and `page` read lists, `problem` and `etag` are common responses;
//! - the other modules are the handlers, by subject.

mod activity;
mod admin;
mod after_restore;
mod aliases;
#[cfg(feature = "lambda")]
pub mod authorizer;
mod bulk;
mod changes;
mod choices;
mod combined_listing;
mod config;
mod duplicates;
mod etag;
mod export;
mod export_slots;
mod extract;
mod health;
mod history;
mod known_damage;
mod listings;
mod live;
mod members;
mod metrics;
mod openapi;
mod overview;
mod own_threads;
mod page;
#[cfg(feature = "lambda")]
mod page_key;
mod paging;
mod problem;
mod repair;
mod results;
mod reviews;
mod router;
mod run_trials;
mod searches;
mod selection;
mod sources;
mod state;
mod states;
mod study;
mod trial;
mod view;

#[cfg(feature = "lambda")]
pub use self::page_key::PageKey;
pub use self::router::{
    HEALTH, MAX_BODY_BYTES, METRICS, description, router, router_for, router_with_trials,
};
pub use self::run_trials::{RunTrials, Trial, TrialOutcome};
pub use self::sources::FlowView;
pub use self::state::BodyMode;

use self::state::{Api, HttpResult};
