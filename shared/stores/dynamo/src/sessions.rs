//! Transactional sessions: the record with its messages, the views and the application's records in one transaction.

use std::collections::BTreeSet;
use std::iter::repeat_n;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::TransactWriteItem;
use jiff::Timestamp;
use messages::{PartitionKey, SessionId, StoreError};
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, CommitSession, Owner, SessionRecord, SettleSessions, View};

use crate::Dynamo;
use crate::entries::Entries;
use crate::error::MalformedItem;
use crate::item::{self, Item, nanos, readable, text};
use crate::names::attributes::{KEEP_UNTIL, STATE};
use crate::outboxes::{SESSION, key};
use crate::records;
use crate::transaction::{Outcome, Step};
use crate::update::{Change, Knowledge};
use crate::views;

const COMMITTED: &str = "committed";
const TOMBSTONE: &str = "tombstone";

fn status(stored: &Item) -> Result<SessionStatus, MalformedItem> {
    match item::str_of(stored, STATE)? {
        COMMITTED => Ok(SessionStatus::Committed),
        TOMBSTONE => Ok(SessionStatus::Tombstone),
        _ => Err(MalformedItem(STATE)),
    }
}

/// The reason why the record of a session was found by a condition and not by the read that followed.
#[derive(Debug, thiserror::Error)]
#[error("the record of the session was deleted in between")]
struct DeletionInBetween;

impl Dynamo {
    /// Returns the record of a session in a state. It is kept for the retention of sessions after `at`, and longer while
    /// it has entries.
    fn session_record(
        &self,
        id: SessionId,
        state: &str,
        at: Timestamp,
        entries: &Entries,
        doing: &str,
    ) -> Result<Item, StoreError> {
        let mut item = item::new(&key(Owner::Session(id)));
        let until = at.checked_add(self.settings.outbox_retention).unwrap_or(Timestamp::MAX);
        item::set(&mut item, STATE, text(state));
        item::set(&mut item, KEEP_UNTIL, nanos(until));
        readable(entries.store(&mut item, SESSION, id.as_uuid()), doing)?;
        Ok(item)
    }

    async fn status(&self, session: SessionId, doing: &str) -> Result<SessionStatus, StoreError> {
        let stored = self.get(&key(Owner::Session(session)), doing).await?;
        stored.map_or(Ok(SessionStatus::Nothing), |item| readable(status(&item), doing))
    }

    /// Returns the outcome of an earlier commit of a session, or of its abandonment; `None` if it has no record.
    async fn earlier_outcome(
        &self,
        session: SessionId,
        doing: &str,
    ) -> Result<Option<CommitOutcome>, StoreError> {
        Ok(match self.status(session, doing).await? {
            SessionStatus::Committed => Some(CommitOutcome::Stored),
            SessionStatus::Tombstone => Some(CommitOutcome::TooLate),
            SessionStatus::Nothing => None,
        })
    }

    /// Returns the step that creates the record of a session. A session that changes nothing has none.
    fn record_step(
        &self,
        session: &SessionRecord,
        has_work: bool,
        doing: &str,
    ) -> Result<Option<Step>, StoreError> {
        if !session.is_change() && !has_work {
            return Ok(None);
        }
        let mut entries = Entries::default();
        entries.replace(&[], &session.entries, doing)?;
        let (id, at) = (session.id, session.committed_at);
        Ok(Some(Step::Create(self.session_record(id, COMMITTED, at, &entries, doing)?)))
    }

    /// Commits a session together with writes of the application, in one transaction. An existing view must not be
    /// changed, so the transaction is repeated without the view.
    pub(crate) async fn commit_with(
        &self,
        session: &SessionRecord,
        work: &[TransactWriteItem],
    ) -> Result<CommitOutcome, StoreError> {
        let doing = format!("committing session {}", session.id);
        let Some(mut before) = records::steps(&session.reads, &session.writes, &doing)? else {
            // An earlier commit of the session may have changed the record between two reads.
            let earlier = self.earlier_outcome(session.id, &doing).await?;
            return Ok(earlier.unwrap_or(CommitOutcome::Changed));
        };
        let of_records = before.len();
        before.extend(work.iter().map(|write| Step::Own(Box::new(write.clone()))));
        let of_work = before.len();
        let record = self.record_step(session, !work.is_empty(), &doing)?;
        let mut views: Vec<&View> = session.views.iter().collect();
        loop {
            let (mut steps, mut of_views) = (before.clone(), Vec::new());
            for view in &views {
                let creation = views::creation(view, self.view_position(), &doing)?;
                of_views.extend(repeat_n(view.partition, creation.len()));
                steps.extend(creation);
            }
            steps.extend(record.clone());
            if steps.is_empty() {
                break;
            }
            let Outcome::Refused(refused) = self.transact(&steps, &doing).await? else { break };
            // This condition is checked first, because a repeated commit may have changed the records that it has read.
            if let Some(earlier) = self.earlier_outcome(session.id, &doing).await? {
                return Ok(earlier);
            }
            match refused.first() {
                Some(step) if *step < of_records => return Ok(CommitOutcome::Changed),
                Some(step) if *step < of_work => return Ok(CommitOutcome::Refused),
                _ => {}
            }
            if record.is_some() && refused.contains(&(steps.len() - 1)) {
                return Err(StoreError::unavailable(doing, DeletionInBetween));
            }
            let of_view = |step: &usize| of_views.get(step.checked_sub(of_work)?).copied();
            let existing: BTreeSet<PartitionKey> = refused.iter().filter_map(of_view).collect();
            views.retain(|view| !existing.contains(&view.partition));
        }
        Ok(CommitOutcome::Stored)
    }
}

#[async_trait]
impl CommitSession for Dynamo {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        self.commit_with(session, &[]).await
    }
}

#[async_trait]
impl SettleSessions for Dynamo {
    async fn find(&self, session: SessionId) -> Result<SessionStatus, StoreError> {
        self.status(session, &format!("looking for session {session}")).await
    }

    /// The first record of a session is kept.
    async fn abandon(&self, session: SessionId, now: Timestamp) -> Result<SessionStatus, StoreError> {
        let doing = format!("abandoning session {session}");
        self.change_item(&key(Owner::Session(session)), Knowledge::Absent, &doing, |stored| match stored {
            Some(stored) => Ok(Change::Keep(readable(status(stored), &doing)?)),
            None => {
                let tombstone = self.session_record(session, TOMBSTONE, now, &Entries::default(), &doing)?;
                Ok(Change::Write(tombstone, SessionStatus::Tombstone))
            }
        })
        .await
    }
}
