//! The entry point for orders and payments.

use messages::{PartitionKey, StoreError};
use outbox::session::CommitError;
use outbox::{Key, Page, StageError, View};
use saga::engine::OpenSession;
use saga::{Engine, EntryPoint, MissingSetting, Saga, Views};
use serde_json::json;

use crate::{ALL, Order, OrderEvent, Orders, Step};

/// The maximum number of orders on a page.
const PAGE: usize = 100;

/// Accepts orders and payments, and shows the state of orders.
#[derive(Clone)]
pub struct Shop {
    /// Opens sessions.
    pub entry: EntryPoint,
    /// Reads orders.
    pub views: Views<Orders>,
}

/// The reason why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The stock is empty.
    #[error("everything is sold out")]
    SoldOut,
    /// Another order has this number.
    #[error("there is an order of this number with another price")]
    Differs,
    /// The order is unknown.
    #[error("no order has this number")]
    Unknown,
    /// It has been paid and shipped, or was abandoned.
    #[error("the order has ended")]
    Ended,
    /// A store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An event cannot be written.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A session was not committed, or its outcome is unknown.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Returns the partition of an order.
pub fn partition(number: &str) -> PartitionKey {
    PartitionKey::named(Orders::NAME, number)
}

impl Shop {
    /// Creates the shop over an engine.
    pub fn over(engine: &Engine) -> Result<Self, MissingSetting> {
        Ok(Self { entry: engine.entry_point("shop")?, views: engine.views(Orders)? })
    }

    /// Places an order. Placing it again changes nothing.
    ///
    /// # Errors
    /// Returns an error if the stock is empty, the number is in use, or a store is unavailable. In the last case, the
    /// order may be placed again.
    pub async fn place(&self, number: &str, cents: u64) -> Result<(), OrderError> {
        // Another request may change the stock after this one has read it.
        let is_conflict = |error: &OrderError| matches!(error, OrderError::Commit(CommitError::Changed));
        self.entry.repeat_conflicts(|| self.try_to_place(number, cents), is_conflict).await
    }

    async fn try_to_place(&self, number: &str, cents: u64) -> Result<(), OrderError> {
        let (order, stock) = (Key::new("order", number), stock());
        let mut session = self.session(number);
        if let Some(placed) = session.read(order.clone()).await? {
            return if placed.body == json!(cents) { Ok(()) } else { Err(OrderError::Differs) };
        }
        let items = session.read(stock.clone()).await?.and_then(|stock| stock.body.as_u64());
        let Some(left) = items.unwrap_or(0).checked_sub(1) else { return Err(OrderError::SoldOut) };
        session.write(order, json!(cents));
        session.write(stock, json!(left));
        let (number, at) = (number.to_owned(), self.views.host.now());
        session.send(&OrderEvent::Placed { number: number.clone(), cents, at })?;
        let placed = Order { number, cents, placed_at: at, step: Step::Placed };
        if let Some(view) = Orders.view(partition(&placed.number), &placed) {
            session.show(view);
        }
        session.commit().await?;
        Ok(())
    }

    /// Accepts a payment.
    ///
    /// # Errors
    /// Returns an error if there is no such order or it has ended, or a store is unavailable.
    pub async fn pay(&self, number: &str, cents: u64) -> Result<(), OrderError> {
        if self.order(number).await?.ended {
            return Err(OrderError::Ended);
        }
        let mut session = self.session(number);
        session.send(&OrderEvent::Paid { cents })?;
        session.commit().await?;
        Ok(())
    }

    /// Adds to the stock and returns the new amount.
    ///
    /// # Errors
    /// Returns an error if another request changes it at the same time, or a store is unavailable.
    pub async fn restock(&self, items: u64) -> Result<u64, OrderError> {
        let mut session = self.session("");
        let found = session.read(stock()).await?.and_then(|stock| stock.body.as_u64());
        let now = found.unwrap_or(0).saturating_add(items);
        session.write(stock(), json!(now));
        session.commit().await?;
        Ok(now)
    }

    /// Returns the current state of an order.
    ///
    /// # Errors
    /// Returns an error if there is no such order, or a store is unavailable.
    pub async fn order(&self, number: &str) -> Result<View, OrderError> {
        self.views.view(partition(number)).await?.ok_or(OrderError::Unknown)
    }

    /// Returns the latest orders.
    pub async fn orders(&self) -> Result<Page, StoreError> {
        self.views.list(ALL, None, PAGE).await
    }

    /// Returns a new session for a request. The records that it reads make a request repeatable.
    fn session(&self, number: &str) -> OpenSession<'_> {
        self.entry.session(partition(number))
    }
}

fn stock() -> Key {
    Key::new("stock", "items")
}
