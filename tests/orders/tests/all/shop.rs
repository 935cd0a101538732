//! Tests of the stock, which requests read and write.

use futures::future::join_all;
use messages::Verdict;
use orders::shop::OrderError;

use crate::world::{TestResult, World};

#[tokio::test]
async fn sold_out_order_is_refused_without_trace() -> TestResult {
    let world = World::with_stock(1).await;
    world.shop.place("1", 100).await?;
    assert!(matches!(world.shop.place("2", 100).await, Err(OrderError::SoldOut)));
    assert!(matches!(world.shop.order("2").await, Err(OrderError::Unknown)));
    assert!(matches!(world.shop.pay("2", 100).await, Err(OrderError::Unknown)));
    assert_eq!(world.shop.restock(1).await?, 1);
    world.shop.place("2", 100).await?;
    Ok(())
}

#[tokio::test]
async fn repeated_order_is_placed_once() -> TestResult {
    let world = World::with_stock(5).await;
    let placed = join_all((0..4).map(|_| world.shop.place("1", 100))).await;
    placed.into_iter().collect::<Result<(), _>>()?;
    world.shop.place("1", 100).await?;
    assert!(matches!(world.shop.place("1", 99).await, Err(OrderError::Differs)));
    world.run().await;
    assert_eq!(world.shop.restock(0).await?, 4);
    assert_eq!(world.verdicts("1", "Placed").await, [Verdict::Handled], "one event was sent");
    Ok(())
}

#[tokio::test]
async fn last_item_goes_to_one_order() -> TestResult {
    for _ in 0..10 {
        let world = World::with_stock(1).await;
        let placed = join_all(["1", "2"].map(|number| world.shop.place(number, 100))).await;
        let won = placed.iter().filter(|placed| placed.is_ok()).count();
        let lost = placed.iter().filter(|placed| matches!(placed, Err(OrderError::SoldOut))).count();
        assert_eq!((won, lost), (1, 1), "{placed:?}");
        assert_eq!(world.shop.orders().await?.items.len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn concurrent_orders_take_one_item_each() -> TestResult {
    let world = World::with_stock(8).await;
    let numbers: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    let placed = join_all(numbers.iter().map(|number| world.shop.place(number, 100))).await;
    assert_eq!(placed.iter().filter(|placed| placed.is_ok()).count(), 8, "{placed:?}");
    assert_eq!(world.shop.orders().await?.items.len(), 8);
    Ok(())
}
