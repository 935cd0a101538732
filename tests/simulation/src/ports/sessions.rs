//! Transactional sessions.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{SessionId, StoreError};
use outbox::records::RecordRead;
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, CommitSession, SessionRecord, SettleSessions};

use crate::coverage::Call;
use crate::describe::short;
use crate::port::Port;
use crate::world::{StoredSession, World};

#[async_trait]
impl CommitSession for Port {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let session = session.clone();
        self.call(Call::SESSION_COMMIT, move |world| world.commit(&session)).await
    }
}

#[async_trait]
impl SettleSessions for Port {
    async fn find(&self, session: SessionId) -> Result<SessionStatus, StoreError> {
        let find = move |world: &mut World| {
            let found = world.find(session);
            world.note(|| format!("session.find     {} -> {found:?}", short(&session)));
            found
        };
        self.call(Call::SESSION_FIND, find).await
    }

    async fn abandon(&self, session: SessionId, _: Timestamp) -> Result<SessionStatus, StoreError> {
        let abandon = move |world: &mut World| {
            let grave = || StoredSession { found: SessionStatus::Tombstone, outbox: Vec::new() };
            let found = world.sessions.entry(session).or_insert_with(grave).found;
            world.note(|| format!("session.bury     {} -> {found:?}", short(&session)));
            found
        };
        self.call(Call::SESSION_BURY, abandon).await
    }
}

impl World {
    fn find(&self, session: SessionId) -> SessionStatus {
        self.sessions.get(&session).map_or(SessionStatus::Nothing, |stored| stored.found)
    }

    fn commit(&mut self, session: &SessionRecord) -> CommitOutcome {
        let found = self.find(session.id);
        let answer = match found {
            SessionStatus::Tombstone => CommitOutcome::TooLate,
            SessionStatus::Nothing if !self.still_hold(&session.reads) => CommitOutcome::Changed,
            SessionStatus::Committed | SessionStatus::Nothing => CommitOutcome::Stored,
        };
        self.note(|| format!("session.commit   {} -> {answer:?}", short(&session.id)));
        if (found, answer) == (SessionStatus::Nothing, CommitOutcome::Stored) {
            self.store_session(session);
        }
        answer
    }

    fn still_hold(&self, reads: &[RecordRead]) -> bool {
        reads.iter().all(|read| self.record_revision(&read.key) == read.revision)
    }

    fn store_session(&mut self, session: &SessionRecord) {
        if session.is_change() {
            let stored = StoredSession { found: SessionStatus::Committed, outbox: session.entries.clone() };
            self.sessions.insert(session.id, stored);
        }
        if !session.views.is_empty() {
            self.stale_reads.keep_views(&self.views);
        }
        for view in &session.views {
            self.views.entry(view.partition).or_insert_with(|| view.clone());
        }
        for write in &session.writes {
            self.write_record(write);
        }
        self.check_commit(session);
    }
}
