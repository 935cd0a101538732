//! The contracts of the ports of the search import, as tests that any adapter can run, and recorded forms.
//!
//! - [`studies`], [`parse_attempts`], [`progress`], [`objects`], [`exports`], [`words`]: the suites, which are used like
//!   those of the engine ([`contracts`]);
//! - [`search`]: jobs, files and studies to store;
//! - [`fixtures`]: data and messages of earlier versions, for every adapter to read;
//! - [`proof`]: the level of proof, for every change or for every night.

pub mod exports;
pub mod fixtures;
pub mod objects;
pub mod parse_attempts;
pub mod progress;
pub mod proof;
pub mod search;
pub mod studies;
pub mod words;
