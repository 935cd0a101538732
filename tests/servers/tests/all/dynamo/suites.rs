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
            testing::ledger::Ports { claim: &ledger, grant: &ledger, check: &ledger, host: &SystemHost };
        testing::ledger::all(&ports).await
    })
    .await
}

#[tokio::test]
async fn processed() -> TestResult {
    with_table("message_key", |client, table| async move {
        let store = ProcessedTable::new(client, imports::SYSTEM, table);
        testing::processed::all(&testing::processed::Ports { store: &store, host: &SystemHost }).await
    })
    .await
}
