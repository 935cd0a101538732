//! Orders on MongoDB, DynamoDB and SQS, orders without MongoDB, and the contract suites with the queues of orders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::config::Services;
use backend::{Config, SystemHost};
use contracts::sample::Samples;
use futures::future::join_all;
use local::{FaultInjection, Runner};
use messages::store::chain;
use messages::{Backoff, Body, Delivery, Disposition, Message, MessageId, Token};
use operate::Health;
use operate::instance::instance;
use orders::shop::{OrderError, Shop, partition};
use orders::{ORDERS_SAGA, QUEUES, SYSTEM, WAREHOUSE};
use saga::{Engine, SAGA, Views};
use serde_json::json;
use servers::amazon::{self, Service};
use servers::mongo::{Scratch, Setup, uri};
use servers::{cleaned_up, unique};
use system_tools::{DocumentStore, Provision};
use uuid::Uuid;

use crate::world::TestResult;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The tables and queues of a test.
struct Cloud {
    provision: Provision,
    settings: Vec<(String, String)>,
}

impl Cloud {
    async fn create(store: DocumentStore) -> Self {
        let provision = Provision::of(&SYSTEM, &aws::config().await, unique("orders")).with_store(store);
        let settings = provision.create().await.unwrap();
        Self { provision, settings }
    }

    /// Returns the settings of the tables and queues without a database, and of others.
    fn config_with(&self, others: &[(&str, &str)]) -> Config {
        let others = others.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::from_pairs(SYSTEM.name, self.settings.iter().cloned().chain(others)).unwrap()
    }

    /// Returns the settings of the tables and queues, and of a database.
    fn config(&self, database: &str) -> Config {
        self.config_with(&[
            ("MONGODB_URI", &*uri()),
            ("MONGODB_DATABASE", database),
            ("ORDERS_BACKEND", "aws"),
        ])
    }

    async fn queues(&self) -> aws::queues::Sqs {
        let urls = aws::queues::Queues::from_pairs(SYSTEM.name, self.config("unused").services.queue_urls);
        let sqs = aws_sdk_sqs::Client::new(&amazon::config(Service::Sqs).await);
        aws::queues::Sqs::new(sqs, urls, &QUEUES, Arc::new(SystemHost)).waiting(Duration::ZERO)
    }

    async fn remove(&self) {
        self.provision.remove().await.unwrap();
    }
}

/// Runs a test with new tables and queues.
async fn in_cloud(test: impl AsyncFnOnce(&Cloud) -> TestResult) -> TestResult {
    let cloud = Cloud::create(DocumentStore::Mongodb).await;
    cleaned_up(test(&cloud), cloud.remove()).await
}

/// Runs a test with a new engine on the services.
async fn on_engine(test: impl AsyncFnOnce(Engine) -> TestResult) -> TestResult {
    in_cloud(async |cloud| {
        // The engine creates the indexes.
        let scratch = Scratch::with(
            &uri(),
            Setup { indexed: false, system: SYSTEM.name.to_owned(), ..Setup::default() },
        )
        .await?;
        let config = cloud.config(scratch.database.name());
        let backend = backend::engine::services(&SYSTEM, config, Arc::new(SystemHost), Arc::new(())).await?;
        let tested = test(backend.ports).await;
        scratch.end().await?;
        tested
    })
    .await
}

async fn until(what: &str, holds: impl AsyncFn() -> Result<bool, OrderError>) -> Result<(), OrderError> {
    let began = Instant::now();
    while !holds().await? {
        assert!(began.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Sells two items, with every message delivered twice.
async fn sell_two_items(engine: Engine) -> TestResult {
    let runner =
        Runner::new(&SYSTEM, engine, None, FaultInjection { copies: 2, ..FaultInjection::default() });
    let shop = Shop::over(&runner.ports())?;
    let state = async |number: &str| Ok::<_, OrderError>(shop.order(number).await?.body["state"].clone());
    let customers = async {
        shop.restock(2).await?;
        shop.place("1", 100).await?;
        shop.place("1", 100).await?;
        shop.pay("1", 100).await?;
        until("order 1 is shipped", async || Ok(state("1").await? == json!("shipped"))).await?;
        // Both requests are for the last item.
        let placed = join_all(["2", "3"].map(|number| shop.place(number, 100))).await;
        let lost = placed.iter().filter(|placed| matches!(placed, Err(OrderError::SoldOut))).count();
        assert!(lost == 1 && placed.iter().any(Result::is_ok), "{placed:?}");
        let won = if placed[0].is_ok() { "2" } else { "3" };
        shop.pay(won, 99).await?;
        shop.pay(won, 100).await?;
        until("the last order is shipped", async || Ok(state(won).await? == json!("shipped"))).await?;
        Ok::<_, OrderError>(shop.orders().await?.items)
    };
    let items = runner.run_until(customers).await??;
    assert_eq!(items.len(), 2);
    assert!(items.iter().all(|view| view.ended));
    Ok(())
}

#[tokio::test]
async fn orders_ship_despite_duplicate_deliveries() -> TestResult {
    on_engine(sell_two_items).await
}

#[tokio::test]
async fn orders_ship_without_mongodb() -> TestResult {
    let cloud = Cloud::create(DocumentStore::Dynamodb).await;
    let config = cloud.config_with(&[("ORDERS_BACKEND", "aws")]);
    let test = async {
        // Existing tables and queues are kept.
        assert_eq!(cloud.provision.create().await?, cloud.settings);
        let open = |config| backend::engine::services(&SYSTEM, config, Arc::new(SystemHost), Arc::new(()));
        let engine = open(config.clone()).await?.ports;
        sell_two_items(engine.clone()).await?;
        let report = Health::over(&engine)?.report(&SYSTEM, "orders-tools operate").await;
        assert!(report.ok, "{report:?}");
        let shown = instance(&engine, partition("1")).await?.ok_or("the order is stored")?;
        let decisions = shown.decisions.ok_or("a history is kept")?;
        let count = |message: &str, verdict: &str| {
            decisions.iter().filter(|it| it.message == message && it.verdict.name() == verdict).count()
        };
        assert!(count("Paid", "dispatched") >= 1, "{decisions:?}");
        assert_eq!([count("Paid", "handled"), count("Shipped", "handled")], [1, 1], "{decisions:?}");
        // The ledger has another key.
        let services =
            Services { store_table: config.services.ledger_table.clone(), ..config.services.clone() };
        let refused = open(Config { services, ..config.clone() }).await.map(|_| ()).unwrap_err();
        assert!(chain(&refused).contains("its key is not pk"), "{}", chain(&refused));
        Ok(())
    };
    cleaned_up(test, cloud.remove()).await
}

#[tokio::test]
async fn newer_message_waits_for_upgrade() -> TestResult {
    on_engine(async |engine| {
        let order = partition("4711");
        let body = |version| Body {
            system: "orders".into(),
            name: "Paid".into(),
            version,
            data: json!({ "cents": 100 }).into(),
        };
        let saga = ORDERS_SAGA.build.unwrap()(&engine)?;
        let unique = Uuid::from_u128(1);
        let message = |version| {
            let id = MessageId::from_uuid(unique);
            let message = Message::new(id, "test", order, engine.host.now(), body(version));
            Message { token: Some(Token::minted_at_entry(order, unique)), ..message }
        };
        let delivery =
            Delivery { record_id: "1".into(), body: message(9).encode()?, receive_count: 3, reason: None };
        let said = saga.consume(&[delivery], None).await;
        let least = Backoff::UPGRADE.at_least(3);
        assert!(matches!(&said[..], [Disposition::Retry { after, .. }] if *after >= least), "{said:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn sagas_sessions_and_views() -> TestResult {
    let scratch = Scratch::new().await?;
    let store = &scratch.mongo;
    let (sweep, retention) = (store.saga_outbox(), scratch.settings.saga_retention);
    let ports = contracts::documents::Ports {
        read: store,
        write: store,
        sweep: &sweep,
        host: &SystemHost,
        retention,
        damage: None,
        damage_entry: None,
    };
    contracts::documents::all(&ports).await?;
    let sweep = store.session_outbox();
    let ports = contracts::sessions::Ports::of(store, &sweep, &SystemHost);
    contracts::sessions::all(&ports).await?;
    let shared = Arc::new(store.clone());
    let views =
        Views { saga: Samples, written: shared.clone(), documents: shared, host: Arc::new(SystemHost) };
    let ports = contracts::views::Ports { views: &views, write: store, documents: store, host: &SystemHost };
    contracts::views::all(&ports).await?;
    scratch.end().await
}

#[tokio::test]
async fn ledger_and_processed() -> TestResult {
    in_cloud(async |cloud| {
        let dynamo = aws_sdk_dynamodb::Client::new(&amazon::config(Service::DynamoDb).await);
        let tables = cloud.config("unused").services;
        let ledger = aws::ledger::Ledger::new(dynamo.clone(), "orders", tables.ledger_table.unwrap());
        let ports =
            contracts::ledger::Ports { claim: &ledger, grant: &ledger, check: &ledger, host: &SystemHost };
        contracts::ledger::all(&ports).await?;
        let store = aws::ledger::ProcessedTable::new(dynamo, "orders", tables.processed_table.unwrap());
        contracts::processed::all(&contracts::processed::Ports { store: &store, host: &SystemHost }).await
    })
    .await
}

#[tokio::test]
async fn queues() -> TestResult {
    in_cloud(async |cloud| {
        let queues = cloud.queues().await;
        let ports = contracts::queues::Ports {
            send: &queues,
            receive: &queues,
            inspect: &queues,
            host: &SystemHost,
            queues: &QUEUES,
            queue: WAREHOUSE,
            other: SAGA,
            fair: false,
        };
        contracts::queues::all(&ports).await
    })
    .await
}
