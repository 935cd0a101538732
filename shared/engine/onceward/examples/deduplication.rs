//! Token-based deduplication for an entity without a saga: deposits change the balance of an account once each.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;

use onceward::jiff::SignedDuration;
use onceward::outbox::session::CommitError;
use onceward::prelude::*;
use onceward::sqlite::{Settings, Store};
use onceward::{SystemHost, serde_json};
use serde::{Deserialize, Serialize};

/// An account, stored with the receipts of its messages.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Account {
    cents: u64,
    receipts: Receipts,
}

/// A message. The sender obtained the token.
#[derive(Debug, Clone)]
struct Deposit {
    account: PartitionKey,
    cents: u64,
    token: Token,
}

struct Bank {
    entities: Entities,
    records: EntryPoint,
}

impl Bank {
    /// Handles a delivery. Returns `false` if the queue has to deliver the message again.
    async fn receive(&self, deposit: &Deposit) -> Result<bool, Box<dyn Error>> {
        // Load the entity before the claim, because the write below depends on the version that was read here.
        let mut session = self.records.session(deposit.account);
        let key = Key::new("account", deposit.account.to_string());
        let stored = session.read(key.clone()).await?;
        let mut account: Account =
            stored.map(|record| serde_json::from_value(record.body)).transpose()?.unwrap_or_default();
        let entry = self.entities.admit(deposit.account, &deposit.token, &account.receipts).await?;
        let visit = match entry {
            Entry::Admitted(visit) => visit,
            Entry::Duplicate => return Ok(true),
            Entry::Busy { .. } => return Ok(false),
        };
        account.cents += deposit.cents;
        account.receipts = visit.receipts();
        session.write(key, serde_json::to_value(&account)?);
        match session.commit().await {
            Ok(_) => self.entities.complete(visit).await?,
            // Another worker changed the account in between.
            Err(CommitError::Changed) => {
                self.entities.abandon(visit).await?;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    async fn balance(&self, account: PartitionKey) -> Result<u64, Box<dyn Error>> {
        let key = Key::new("account", account.to_string());
        let stored = self.records.session(account).read(key).await?.ok_or("the account is unknown")?;
        Ok(serde_json::from_value::<Account>(stored.body)?.cents)
    }
}

static QUEUES: [QueueSpec; 0] = [];
static SYSTEM: System<Engine> = System { name: "bank", queues: &QUEUES, functions: &[] };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, host) = (tempfile::tempdir()?, Arc::new(SystemHost));
    let store = Arc::new(Store::open(dir.path(), host.clone(), Settings::of(SYSTEM.name, &QUEUES))?);
    let engine = store.engine(SYSTEM.name, host.clone(), Arc::new(()));
    let lease = SignedDuration::from_secs(30);
    let entities = Entities { ledger: store.clone(), tokens: store.clone(), host, lease };
    let bank = Bank { entities, records: engine.entry_point("bank")? };
    let account = PartitionKey::named("accounts", "Ada");
    let mut deposits = Vec::new();
    for cents in [100, 20, 3] {
        deposits.push(Deposit { account, cents, token: bank.entities.issue(account).await? });
    }
    // Every message three times, in any order, and again much later.
    for deposit in deposits.iter().rev().chain(&deposits).chain(&deposits) {
        while !bank.receive(deposit).await? {}
    }
    assert_eq!(bank.balance(account).await?, 123);
    println!("nine deliveries of three deposits: {} cents", bank.balance(account).await?);
    Ok(())
}
