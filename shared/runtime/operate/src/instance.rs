//! One instance of a saga: its stored document, and the decisions about its messages.

use jiff::Timestamp;
use messages::{DecisionRecord, Json, PartitionKey, RecordedVerdict, StoreError};
use outbox::{AgeFilter, Cursor, Entry, FieldFilter, Page};
use saga::history::KeepHistory;
use saga::{AccessError, Document, Engine, ExpectedToken, Intervention};
use serde::Serialize;

/// The number of decisions that are read at a time, and the maximum for one instance.
const DECISIONS_PAGE: usize = 1_000;
const MAX_DECISIONS: usize = 10_000;

/// An instance as stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceDetails {
    /// The instance.
    pub partition: PartitionKey,
    /// The number of writes.
    pub version: u64,
    /// The state, as the saga serializes it.
    pub state: Json,
    /// The version of the state's format.
    pub state_version: u32,
    /// When the instance ended.
    pub ended_at: Option<Timestamp>,
    /// When and why an operator paused it.
    pub paused: Option<Intervention>,
    /// When and why an operator ended it.
    pub terminated: Option<Intervention>,
    /// The messages that the instance waits for.
    pub expected: Vec<ExpectedToken>,
    /// Effects that are not performed yet.
    pub outbox: Vec<Entry>,
    /// `true` if the instance waits for a message that nothing in its outbox causes. A message that was sent may still
    /// be in a queue.
    pub is_stalled: bool,
    /// The decisions about its messages in order; `None` if no history is kept or it was not read.
    pub decisions: Option<Vec<DecisionRecord<RecordedVerdict>>>,
}

impl InstanceDetails {
    fn of(document: Document) -> Self {
        let Document { partition, version, content, outbox } = document;
        let is_stalled = content.is_stalled(&outbox);
        Self {
            partition,
            version,
            is_stalled,
            state: content.state,
            state_version: content.state_version,
            ended_at: content.ended_at,
            paused: content.paused,
            terminated: content.terminated,
            expected: content.expected,
            outbox,
            decisions: None,
        }
    }
}

/// Returns an instance of any saga; `None` if it has no document.
pub async fn instance(
    engine: &Engine,
    partition: PartitionKey,
) -> Result<Option<InstanceDetails>, AccessError> {
    let Some(found) = stored(engine, partition).await? else { return Ok(None) };
    let decisions = match &engine.history {
        Some(history) => Some(decisions(history.as_ref(), partition).await?),
        None => None,
    };
    Ok(Some(InstanceDetails { decisions, ..found }))
}

/// Returns an instance of any saga without its history; `None` if it has no document.
pub async fn stored(
    engine: &Engine,
    partition: PartitionKey,
) -> Result<Option<InstanceDetails>, AccessError> {
    let document = engine.stores()?.read_documents.load_latest(partition, engine.host.now()).await?;
    Ok(document.map(InstanceDetails::of))
}

/// Returns the decisions about the messages of an instance in order, up to 10,000.
pub async fn decisions(
    history: &dyn KeepHistory,
    partition: PartitionKey,
) -> Result<Vec<DecisionRecord<RecordedVerdict>>, StoreError> {
    let (mut decisions, mut after) = (Vec::new(), None);
    while decisions.len() < MAX_DECISIONS {
        let page = history.history(Some(partition), after, DECISIONS_PAGE).await?;
        let Some((cursor, _)) = page.last() else { break };
        after = Some(*cursor);
        decisions.extend(page.into_iter().map(|(_, decision)| decision));
    }
    Ok(decisions)
}

/// The instances to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// `true` for instances that have ended, the latest first; `false` for the others, the oldest first.
    pub ended: bool,
    /// The values of fields of their views.
    pub fields: FieldFilter,
}

/// Returns up to `limit` instances as their views were last written, after a cursor or from the beginning. The
/// documents of the instances may be newer than their views. A page may be short although another one follows; see
/// [`outbox::ReadViews::matching`].
pub async fn list(
    engine: &Engine,
    filter: &InstanceFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<Page, AccessError> {
    let age = AgeFilter { list: None, ended: filter.ended, before: Timestamp::MAX };
    let mut page = engine.stores()?.read_views.matching(&age, &filter.fields, after, limit).await?;
    page.items.retain(|view| !view.is_removed());
    Ok(page)
}
