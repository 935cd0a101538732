//! Tests of orders on every store: complete orders, and the contract suites with the queues of orders.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

mod declared;
mod http;
mod model;
mod operate;
mod operator_http;
mod page;
mod scenarios;
mod services;
mod shop;
mod suites;
mod world;
