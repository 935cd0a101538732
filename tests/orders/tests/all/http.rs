//! Tests of the HTTP API of the shop.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use messages::Traceparent;
use orders::shop::partition;
use rstest::rstest;
use saga::SAGA;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::{TestResult, World, messages};

async fn request(world: &World, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    let request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_string())).unwrap();
    let response = orders::http::router(world.shop.clone()).oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn order_is_placed_and_paid_over_http() -> TestResult {
    let world = World::with_stock(1).await;
    let cents = json!({ "cents": 100 });
    let (status, _) = request(&world, Method::POST, "/orders/4711", cents.clone()).await;
    assert_eq!(status, StatusCode::CREATED);
    let (status, body) = request(&world, Method::POST, "/orders/4712", cents.clone()).await;
    assert_eq!((status, &body["error"]), (StatusCode::CONFLICT, &json!("everything is sold out")));
    let (status, _) = request(&world, Method::POST, "/orders/4711/payments", cents.clone()).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    world.run().await;
    let (status, order) = request(&world, Method::GET, "/orders/4711", Value::Null).await;
    assert_eq!((status, &order["state"], &order["cents"]), (StatusCode::OK, &json!("shipped"), &json!(100)));
    let (_, all) = request(&world, Method::GET, "/orders", Value::Null).await;
    assert_eq!(all, json!([order]));
    let (status, _) = request(&world, Method::POST, "/orders/4711/payments", cents).await;
    assert_eq!(status, StatusCode::CONFLICT);
    Ok(())
}

#[tokio::test]
async fn invalid_http_requests_are_refused() -> TestResult {
    let world = World::with_stock(1).await;
    let (status, _) = request(&world, Method::GET, "/orders/1", Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = request(&world, Method::POST, "/orders/1", json!({ "cents": 0 })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    Ok(())
}

#[rstest]
#[case::continued(&["00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01"], true)]
#[case::later_version(&["01-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01-more"], true)]
#[case::none(&[], false)]
#[case::several(&["00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01"; 2], false)]
#[case::zero(&["00-00000000000000000000000000000000-b000000000000010-01"], false)]
#[case::letters(&["00-0199B6D07D5E7A3C8F216A1F0C9E4B11-B000000000000010-01"], false)]
#[case::short(&["00-1-2-01"], false)]
#[case::foreign_characters(&["00-\u{e9}"], false)]
#[tokio::test]
async fn trace_of_a_request_is_continued(#[case] headers: &[&str], #[case] is_continued: bool) -> TestResult {
    let world = World::with_stock(1).await;
    let mut order = Request::post("/orders/4711").header(header::CONTENT_TYPE, "application/json");
    for value in headers {
        order = order.header("traceparent", value.as_bytes());
    }
    let order = order.body(Body::from(json!({ "cents": 100 }).to_string()))?;
    let response = orders::http::router(world.shop.clone()).oneshot(order).await?;
    assert_eq!(response.status(), StatusCode::CREATED);

    let placed = &messages(&world.take(&SAGA).await)[0];
    let parent = placed.traceparent.as_deref().and_then(Traceparent::parse).unwrap();
    let client =
        Traceparent { trace: 0x0199_b6d0_7d5e_7a3c_8f21_6a1f_0c9e_4b11, span: 0xb000_0000_0000_0010 };
    assert_eq!(parent == client, is_continued, "{parent}");
    assert_eq!(parent.trace == partition("4711").as_uuid().as_u128(), !is_continued, "{parent}");
    Ok(())
}
