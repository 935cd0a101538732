//! A whole system whose database is DynamoDB.

use std::sync::Arc;
use std::time::Duration;

use ::orders::shop::{OrderError, Shop};
use backend::SystemHost;
use jiff::SignedDuration;
use local::{FaultInjection, Runner};
use outbox::Policy;
use saga::Engine;
use servers::TestResult;
use servers::amazon::Service;
use servers::net::{Fate, Unreliable};

use super::{impatient, store, with_store};

const NUMBERS: [&str; 3] = ["4711", "4712", "4713"];

/// Repeats a request as a customer does, until it has an answer.
async fn repeated<T, F: Future<Output = Result<T, OrderError>>>(request: impl Fn() -> F) -> T {
    loop {
        if let Ok(answer) = request().await {
            return answer;
        }
    }
}

/// Calls are lost before or after they took effect, throttled or failed, and every message is delivered twice.
#[tokio::test]
async fn orders_are_shipped_despite_faults() -> TestResult {
    with_store(|plain| async move {
        let fates = vec![Fate::Lost, Fate::Unanswered, Fate::THROTTLED, Fate::FAILED];
        let proxy = Unreliable::before(&Service::DynamoDb.address(), Fate::some(4_711, 25, fates)).await;
        let stores = store(impatient(&proxy.address).await, &plain.settings().table).stores();
        // A claim whose responses are all lost, although it is repeated, delays its entry until the claim ends.
        let policy = Policy {
            stuck_after: SignedDuration::from_secs(4),
            send_timeout: Duration::from_secs(1),
            ..Policy::default()
        };
        let engine = move |engine| Engine { stores: Ok(stores.clone()), policy, ..engine };
        let (dir, faults) = (tempfile::tempdir()?, FaultInjection { copies: 2, ..FaultInjection::default() });
        let host = Arc::new(SystemHost);
        let runner = Runner::open_with(&::orders::SYSTEM, dir.path(), host, faults, engine).await?;
        let shop = Shop::over(&runner.ports())?;
        let customers = async {
            repeated(|| shop.restock(10)).await;
            for number in NUMBERS {
                repeated(|| shop.place(number, 900)).await;
                repeated(|| shop.pay(number, 900)).await;
            }
            for number in NUMBERS {
                while !repeated(|| shop.order(number)).await.ended {
                    // A failed sweep is repeated, as its schedule does.
                    let _ = runner.sweep().await;
                    runner.settled().await?;
                }
            }
            Ok::<_, messages::StoreError>(())
        };
        runner.run_until(customers).await??;
        let listed = shop.orders().await;
        let listed = if listed.is_ok() { listed } else { shop.orders().await };
        let states: Vec<String> = listed?.items.iter().map(|view| view.body["state"].to_string()).collect();
        assert_eq!(states, ["\"shipped\""; 3]);
        assert_eq!(proxy.faults().len(), 4, "{:?}", proxy.faults());
        Ok(())
    })
    .await
}
