//! The contract suites.

use aws::ledger::{Ledger, ProcessedTable};
use backend::SystemHost;

use super::with_table;
use servers::TestResult;

#[tokio::test]
async fn ledger() -> TestResult {
    with_table("partition_id", |client, table| async move {
        let ledger = Ledger::new(client, imports::SYSTEM, table);
        let ports =
            contracts::ledger::Ports { claim: &ledger, grant: &ledger, check: &ledger, host: &SystemHost };
        contracts::ledger::all(&ports).await
    })
    .await
}

#[tokio::test]
async fn processed() -> TestResult {
    with_table("message_key", |client, table| async move {
        let store = ProcessedTable::new(client, imports::SYSTEM, table);
        contracts::processed::all(&contracts::processed::Ports { store: &store, host: &SystemHost }).await
    })
    .await
}
