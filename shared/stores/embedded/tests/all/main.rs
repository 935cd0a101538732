//! The embedded store: the contract suites that every adapter passes, and its additional guarantees.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

mod application;
mod depot;
mod disk_space;
mod durability;
mod engine;
mod files;
mod fixtures;
mod folder;
mod keyed;
mod opening;
mod packed;
mod queues;
mod recovery;
mod suites;
mod upkeep;
