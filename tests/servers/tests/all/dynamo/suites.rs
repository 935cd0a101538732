//! The contract suites.

use aws::ledger::{Ledger, ProcessedTable};
use backend::SystemHost;

use super::with_table;
use servers::Tested;

#[tokio::test]
async fn ledger() -> Tested {
    with_table("partition_id", |client, table| async move {
        let ledger = Ledger::new(client, imports::SYSTEM, table);
        let ports =
            testing::ledger::Ports { claim: &ledger, grant: &ledger, check: &ledger, host: &SystemHost };
        testing::ledger::all(&ports).await
    })
    .await
}

#[tokio::test]
async fn processed() -> Tested {
    with_table("message_key", |client, table| async move {
        let store = ProcessedTable::new(client, imports::SYSTEM, table);
        testing::processed::all(&testing::processed::Ports { store: &store, host: &SystemHost }).await
    })
    .await
}
