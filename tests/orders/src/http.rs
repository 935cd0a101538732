//! The HTTP API of the shop, with JSON.

use std::num::NonZeroU64;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use messages::store::chain;
use messages::{Traceparent, trace};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::shop::{OrderError, Shop};

/// The body of both requests.
#[derive(Deserialize)]
struct Amount {
    cents: NonZeroU64,
}

/// Returns the routes.
pub fn router(shop: Shop) -> Router {
    Router::new()
        .route("/orders", get(orders))
        .route("/orders/{number}", post(place).get(order))
        .route("/orders/{number}/payments", post(pay))
        .with_state(shop)
        .layer(from_fn(continue_trace))
}

/// Continues the trace of a request in the messages that it sends.
async fn continue_trace(request: Request, next: Next) -> Response {
    let headers = request.headers().get_all("traceparent").iter().map(HeaderValue::as_bytes);
    let parent = Traceparent::of_headers(headers);
    trace::continued(parent, next.run(request)).await
}

async fn place(
    State(shop): State<Shop>,
    Path(number): Path<String>,
    Json(amount): Json<Amount>,
) -> Result<StatusCode, OrderError> {
    shop.place(&number, amount.cents.get()).await.map(|()| StatusCode::CREATED)
}

async fn pay(
    State(shop): State<Shop>,
    Path(number): Path<String>,
    Json(amount): Json<Amount>,
) -> Result<StatusCode, OrderError> {
    shop.pay(&number, amount.cents.get()).await.map(|()| StatusCode::ACCEPTED)
}

async fn order(State(shop): State<Shop>, Path(number): Path<String>) -> Result<Json<Value>, OrderError> {
    shop.order(&number).await.map(|view| Json(view.body))
}

async fn orders(State(shop): State<Shop>) -> Result<Json<Vec<Value>>, OrderError> {
    Ok(Json(shop.orders().await?.items.into_iter().map(|view| view.body).collect()))
}

impl IntoResponse for OrderError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::SoldOut | Self::Differs | Self::Ended => StatusCode::CONFLICT,
            Self::Stage(_) => StatusCode::BAD_REQUEST,
            Self::Store(_) | Self::Commit(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let error = if status.is_server_error() { "try again".to_owned() } else { self.to_string() };
        if status.is_server_error() {
            tracing::error!(error = chain(&self), "a request failed");
        }
        (status, Json(json!({ "error": error }))).into_response()
    }
}
