//! The tables of the application, written in the transaction of a session.

use async_trait::async_trait;
use aws_sdk_dynamodb::types::TransactWriteItem;
use messages::StoreError;
use outbox::{CommitOutcome, CommitSession, SessionRecord};

use crate::Dynamo;

/// Commits sessions together with writes of the application.
#[derive(Clone)]
pub struct WithWork {
    dynamo: Dynamo,
    writes: Vec<TransactWriteItem>,
}

impl Dynamo {
    /// Returns an adapter that commits a session together with `writes` to other tables, in one transaction:
    ///
    /// ```no_run
    /// # use dynamo::Dynamo;
    /// use dynamo::aws_sdk_dynamodb::error::BuildError;
    /// use dynamo::aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
    ///
    /// # fn adapter(dynamo: &Dynamo) -> Result<impl outbox::CommitSession, BuildError> {
    /// let invoice = Put::builder()
    ///     .table_name("shop-invoices")
    ///     .item("number", AttributeValue::S("A-1".to_owned()))
    ///     .condition_expression("attribute_not_exists(number)")
    ///     .build()?;
    /// Ok(dynamo.with_work(vec![TransactWriteItem::builder().put(invoice).build()]))
    /// # }
    /// ```
    ///
    /// If a condition of a write does not hold, the session is refused and nothing is stored. The writes are not
    /// repeated if the session is committed already. They count towards the 100 items of a transaction. The role of the
    /// function needs a grant for each call on these tables.
    pub fn with_work(&self, writes: Vec<TransactWriteItem>) -> WithWork {
        WithWork { dynamo: self.clone(), writes }
    }
}

#[async_trait]
impl CommitSession for WithWork {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        self.dynamo.commit_with(session, &self.writes).await
    }
}
