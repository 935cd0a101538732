//! The prices of calls, from a table that names its sources.

use serde::Deserialize;

/// The price table. It excludes MongoDB, because a cluster is paid by the hour and not by calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Prices {
    /// The region that the prices are for.
    pub region: String,
    /// One conditional write to the ledger.
    pub dynamodb_write_unit: Price,
    /// One request to a queue.
    pub sqs_request: Price,
    /// One invocation.
    pub lambda_request: Price,
}

/// One price.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Price {
    /// US dollars per million.
    pub per_million: f64,
    /// The month from which the price is known to hold.
    pub as_of: String,
    /// The billed unit.
    pub what: String,
    /// The source of the price.
    pub source: String,
}

impl Prices {
    /// Returns the table that is part of the program.
    ///
    /// # Errors
    /// Returns an error if it is invalid, which a test excludes.
    pub fn shipped() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("prices.json"))
    }
}
