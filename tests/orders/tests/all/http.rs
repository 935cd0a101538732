//! The shop's face.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::{TestResult, World};

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
async fn an_order_goes_its_way_over_http() -> TestResult {
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
async fn what_cannot_be_is_refused() -> TestResult {
    let world = World::with_stock(1).await;
    let (status, _) = request(&world, Method::GET, "/orders/1", Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = request(&world, Method::POST, "/orders/1", json!({ "cents": 0 })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    Ok(())
}
