//! What a call costs, from a table that names its sources.

use serde::Deserialize;

/// The price table. MongoDB is not in it: a cluster is paid by the hour, whatever the number of calls.
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
    /// US dollars for a million.
    pub per_million: f64,
    /// The month from which the price is known to hold.
    pub as_of: String,
    /// Of what.
    pub what: String,
    /// Where it stands.
    pub source: String,
}

impl Prices {
    /// The table that comes with the program.
    ///
    /// # Errors
    /// When it cannot be read, which a test rules out.
    pub fn shipped() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("prices.json"))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shipped_table_is_readable() -> serde_json::Result<()> {
        super::Prices::shipped().map(|_| ())
    }
}
