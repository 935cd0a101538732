//! Transactional sessions.

use async_trait::async_trait;
use contracts::{SessionId, StoreError};
use imports::Write;
use jiff::Timestamp;
use outbox::session::Found;
use outbox::{CommitSession, Committed, SessionRecord, SettleSessions};

use crate::coverage::Call;
use crate::port::Port;
use crate::world::{StoredSession, World, short};

#[async_trait]
impl CommitSession<Write> for Port {
    async fn commit(&self, record: &SessionRecord, writes: &[Write]) -> Result<Committed, StoreError> {
        let (record, writes) = (record.clone(), writes.to_vec());
        self.call(Call::SessionCommit, move |world| world.commit(&record, &writes)).await
    }
}

#[async_trait]
impl SettleSessions for Port {
    async fn find(&self, session: SessionId) -> Result<Found, StoreError> {
        let find = move |world: &mut World| {
            let found = world.find(session);
            world.note(|| format!("session.find     {} -> {found:?}", short(&session)));
            found
        };
        self.call(Call::SessionFind, find).await
    }

    async fn bury(&self, session: SessionId, _: Timestamp) -> Result<Found, StoreError> {
        let bury = move |world: &mut World| {
            let grave = || StoredSession { found: Found::Tombstone, outbox: Vec::new() };
            let found = world.sessions.entry(session).or_insert_with(grave).found;
            world.note(|| format!("session.bury     {} -> {found:?}", short(&session)));
            found
        };
        self.call(Call::SessionBury, bury).await
    }
}

impl World {
    fn find(&self, session: SessionId) -> Found {
        self.sessions.get(&session).map_or(Found::Nothing, |stored| stored.found)
    }

    fn commit(&mut self, record: &SessionRecord, writes: &[Write]) -> Committed {
        let answer = match self.find(record.id) {
            Found::Tombstone => Committed::TooLate,
            Found::Committed | Found::Nothing => Committed::Stored,
        };
        self.note(|| format!("session.commit   {} -> {answer:?}", short(&record.id)));
        if self.find(record.id) != Found::Nothing {
            return answer;
        }
        let session = StoredSession { found: Found::Committed, outbox: record.entries.clone() };
        self.sessions.insert(record.id, session);
        for Write::CreateJob(job) in writes {
            self.jobs.entry(job.search_id).or_insert_with(|| (**job).clone());
        }
        self.check_commit(record, writes);
        answer
    }
}
