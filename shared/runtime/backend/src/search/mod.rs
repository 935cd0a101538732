//! The settings and the ports of the search import.

mod environment;
#[cfg(feature = "search-services")]
pub(crate) mod files;
#[cfg(feature = "search-services")]
mod function;
mod opening;
mod ports;
#[cfg(feature = "search-services")]
pub mod services;
mod settings;

#[cfg(feature = "search-services")]
pub use function::{for_function, open_for};
#[cfg(feature = "embedded")]
pub use opening::{embedded, store_settings};
pub use opening::{open, queue_setting};
pub use ports::Backend;
pub use settings::{NOT_ON_LAMBDA, SearchSettings};
