//! Defects of the application that are planted between its functions and the engine's ports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dedup::{GrantTokens, ProcessedMessages};
use functions::parse_references;
use imports::{FileId, FileRef, ParseCommand, SearchEvent, SearchId, SearchImport};
use jiff::Timestamp;
use messages::{Host, Message, MessageId, PartitionKey, StoreError, Token};
use outbox::{
    CommitOutcome, CommitSession, Entry, Key, ReadRecords, SessionRecord, Settlement, StoredRecord, Write,
};
use saga::{Engine, LoadResult, Persist, PersistOutcome, ReadDocuments, Saga, Stores, WriteDocuments};
use serde::Deserialize;
use service::{FIRST_REQUEST, REPAIRS, RepairedFile, Repairs};
use simulation::Access;
use uuid::Uuid;

use super::outside::{Outside, Truth};

/// The deadline of a search starts at its first message, regardless of arriving files.
pub(super) const DEADLINE_NOT_RENEWED: &str = "arrivals do not renew the deadline";
/// A keyed request grants different tokens each time.
pub(super) const NEW_TOKENS_ON_REPEAT: &str = "new tokens are created for a repeated request";
/// A client that has announced a search treats it as its own request, although another request came first.
pub(super) const BOTH_WIN: &str = "both bodies under one key win";

/// A keyed request whose commit was interrupted makes its key unusable, as if all attempts had one session.
pub(super) const KEY_BURNED: &str = "a commit that was broken off burns its key";

/// A parser drops a parse command because of a document that may be outdated.
pub(super) const EARLIER_DOCUMENT_BELIEVED: &str =
    "a parse command is dropped because of an earlier document";

/// A parser retries a parse command until this version can read the document of its search.
pub(super) const NEWER_DOCUMENT_AWAITED: &str = "a parse command waits for a newer version";

/// A reviewer's decision is stored without the command that compares its studies again.
pub(super) const DECISION_ALONE: &str = "a decision does not compare its studies";

/// A parser executes a deletion that a client requested, although the database does not record it.
pub(super) const UNRECORDED_DELETION: &str = "a deletion is executed that the database does not record";

/// A parser reads the file of a repair that the database does not record, although another search reads it.
pub(super) const UNRECORDED_REPAIR: &str = "a repair reads a file that a restored search reads";

/// A restored search that waits for the result of its bucket scan does not repeat the scan.
pub(super) const SCAN_NOT_REPEATED: &str = "a pending bucket scan is not repeated after a restore";

/// A parser sends a command again at each redelivery, because it does not remember that it has done so.
pub(super) const RESENT_AT_EACH_REDELIVERY: &str = "a continued command is sent again at each redelivery";

/// Returns the engine of one worker with the planted defect, if it is one of these.
pub(super) fn plant(mut engine: Engine, access: &Access<Outside>) -> Engine {
    if let Ok(stores) = &mut engine.stores {
        if access.has(DEADLINE_NOT_RENEWED) {
            let inner = Arc::clone(&stores.write_documents);
            stores.write_documents = Arc::new(KeepsDeadline { inner, access: access.clone() });
        }
        if access.has(DECISION_ALONE) {
            stores.commit_sessions = ChangesSessions::over(stores, without_comparisons);
        }
        if access.has(SCAN_NOT_REPEATED) {
            stores.commit_sessions = ChangesSessions::over(stores, without_repeated_scan);
        }
        if access.has(KEY_BURNED) {
            let inner = Arc::clone(&stores.commit_sessions);
            stores.commit_sessions = Arc::new(Burns { inner, access: access.clone() });
        }
        let is_parser = access.function() == Some(parse_references::NAME);
        if is_parser && access.has(EARLIER_DOCUMENT_BELIEVED) {
            let inner = Arc::clone(&stores.read_documents);
            stores.read_documents = Arc::new(BelievesEarlier { inner });
        }
        if is_parser && access.has(NEWER_DOCUMENT_AWAITED) {
            let inner = Arc::clone(&stores.read_documents);
            stores.read_documents = Arc::new(AwaitsNewer { inner });
        }
        if is_parser && (access.has(UNRECORDED_DELETION) || access.has(UNRECORDED_REPAIR)) {
            let inner = Arc::clone(&stores.records);
            stores.records = Arc::new(BelievesCommands { inner, access: access.clone() });
        }
        if access.has(BOTH_WIN) {
            let meant = Arc::default();
            let (commit, records) = (Arc::clone(&stores.commit_sessions), Arc::clone(&stores.records));
            stores.commit_sessions = Arc::new(Remembers { inner: commit, meant: Arc::clone(&meant) });
            stores.records = Arc::new(Believes { inner: records, meant });
        }
    }
    if access.has(RESENT_AT_EACH_REDELIVERY)
        && let Ok(processed) = &mut engine.processed
    {
        *processed = Arc::new(ForgetsRecords { inner: Arc::clone(processed) });
    }
    if access.has(NEW_TOKENS_ON_REPEAT)
        && let Ok(partitions) = &mut engine.partitions
    {
        let (inner, host) = (Arc::clone(&partitions.tokens), Arc::clone(&engine.host));
        partitions.tokens = Arc::new(MintsAnew { inner, host, begun: Mutex::default() });
    }
    engine
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the due time of the previous timer when a file arrives.
struct KeepsDeadline {
    inner: Arc<dyn WriteDocuments>,
    access: Access<Outside>,
}

#[async_trait]
impl WriteDocuments for KeepsDeadline {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        let mut writes = writes.to_vec();
        for write in &mut writes {
            let before = self.access.with(|scene| scene.due.get(&write.partition).copied());
            let cancelled = before.filter(|(id, _)| write.cancel.contains(id));
            let is_timeout = |payload: &str| {
                let message = Message::decode(payload).ok();
                matches!(message.map(|message| message.read()), Some(Ok(SearchEvent::UploadTimeout(_))))
            };
            for entry in write.add.iter_mut().filter(|entry| is_timeout(&entry.payload)) {
                if let Some((_, due_at)) = cancelled {
                    (entry.due_at, entry.next_attempt_at) = (due_at, due_at);
                }
                let due: (MessageId, Timestamp) = (entry.id, entry.due_at);
                self.access.with(|scene| scene.due.insert(write.partition, due));
            }
        }
        self.inner.persist(&writes, now).await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.inner.settle(settlements).await
    }
}

/// Remembers no record of a queue.
struct ForgetsRecords {
    inner: Arc<dyn ProcessedMessages>,
}

#[async_trait]
impl ProcessedMessages for ForgetsRecords {
    async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError> {
        Ok(!key.contains(dedup::filter::RESENT_RECORD) && self.inner.is_remembered(key, now).await?)
    }

    async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError> {
        self.inner.remember(key, expires_at).await
    }
}

/// Returns any version of a document as the latest one.
struct BelievesEarlier {
    inner: Arc<dyn ReadDocuments>,
}

#[async_trait]
impl ReadDocuments for BelievesEarlier {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        self.inner.load(partitions, now).await
    }

    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult {
        self.inner.load(&[partition], now).await?.pop().unwrap_or(Ok(None))
    }
}

/// Reports a document that this version cannot read as unavailable.
struct AwaitsNewer {
    inner: Arc<dyn ReadDocuments>,
}

#[async_trait]
impl ReadDocuments for AwaitsNewer {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        let loaded = self.inner.load(partitions, now).await?;
        Ok(loaded.into_iter().map(readable).collect())
    }

    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult {
        readable(self.inner.load_latest(partition, now).await)
    }
}

fn readable(loaded: LoadResult) -> LoadResult {
    let newer = |why: String| StoreError::unavailable("reading a document", why);
    match loaded {
        Ok(Some(document)) if document.content.state_version > SearchImport::STATE_VERSION => {
            Err(newer(format!("it has version {}", document.content.state_version)))
        }
        Err(error) if !error.is_retryable() => Err(newer(error.chain())),
        loaded => loaded,
    }
}

/// Grants new tokens to a partition that already exists.
struct MintsAnew {
    inner: Arc<dyn GrantTokens>,
    host: Arc<dyn Host>,
    begun: Mutex<BTreeSet<PartitionKey>>,
}

#[async_trait]
impl GrantTokens for MintsAnew {
    async fn grant(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.inner.grant(partition, tokens, now).await
    }

    async fn begin(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let is_repeated = !locked(&self.begun).insert(partition);
        if is_repeated {
            let fresh = tokens.iter().map(|_| Token::minted_at_entry(partition, self.host.fresh_id()));
            self.inner.grant(partition, &fresh.collect::<Vec<_>>(), now).await?;
        }
        self.inner.begin(partition, tokens, now).await
    }

    async fn revoke(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.inner.revoke(partition, tokens, now).await
    }
}

/// Refuses each further session that records the first request of a key.
struct Burns {
    inner: Arc<dyn CommitSession>,
    access: Access<Outside>,
}

#[async_trait]
impl CommitSession for Burns {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let is_keyed = session.writes.iter().any(|write| write.key.kind == FIRST_REQUEST);
        let search = session.views.first().map(|view| view.partition).filter(|_| is_keyed);
        let is_burned =
            search.is_some_and(|search| !self.access.with(|scene| scene.attempted.insert(search)));
        if is_burned { Ok(CommitOutcome::TooLate) } else { self.inner.commit(session).await }
    }
}

/// Changes the entries of each session before they are stored.
struct ChangesSessions {
    inner: Arc<dyn CommitSession>,
    change: fn(&mut Vec<Entry>),
}

impl ChangesSessions {
    fn over(stores: &Stores, change: fn(&mut Vec<Entry>)) -> Arc<dyn CommitSession> {
        Arc::new(Self { inner: Arc::clone(&stores.commit_sessions), change })
    }
}

#[async_trait]
impl CommitSession for ChangesSessions {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let mut session = session.clone();
        (self.change)(&mut session.entries);
        self.inner.commit(&session).await
    }
}

/// Removes the commands that compare studies.
fn without_comparisons(entries: &mut Vec<Entry>) {
    let compares = |entry: &Entry| {
        let message = Message::decode(&entry.payload).ok();
        matches!(message.map(|message| message.read()), Some(Ok(ParseCommand::CompareStudies(_))))
    };
    entries.retain(|entry| !compares(entry));
}

/// Removes an operator's request to repeat a bucket scan.
fn without_repeated_scan(entries: &mut Vec<Entry>) {
    for entry in entries {
        entry.payload = entry.payload.replace(r#","repeats_scan":true"#, "");
    }
}

/// The records of keyed requests that a worker intended to write.
type IntendedWrites = Arc<Mutex<BTreeMap<Key, Write>>>;

struct Remembers {
    inner: Arc<dyn CommitSession>,
    meant: IntendedWrites,
}

#[async_trait]
impl CommitSession for Remembers {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let requests = session.writes.iter().filter(|write| write.key.kind == FIRST_REQUEST);
        locked(&self.meant).extend(requests.map(|write| (write.key.clone(), write.clone())));
        self.inner.commit(session).await
    }
}

/// Treats the intended records as stored.
struct Believes {
    inner: Arc<dyn ReadRecords>,
    meant: IntendedWrites,
}

#[async_trait]
impl ReadRecords for Believes {
    async fn stored_record(&self, key: &Key) -> Result<Option<StoredRecord>, StoreError> {
        let found = self.inner.stored_record(key).await?;
        let meant = locked(&self.meant).get(key).cloned();
        Ok(found.map(|found| match meant {
            Some(meant) => StoredRecord { body: meant.body, ..found },
            None => found,
        }))
    }
}

/// Reports every deletion, or every repair, that a client requested as recorded.
struct BelievesCommands {
    inner: Arc<dyn ReadRecords>,
    access: Access<Outside>,
}

impl BelievesCommands {
    fn searches_with(&self, wanted: fn(&Truth) -> bool) -> Vec<SearchId> {
        self.access.with(|scene| {
            scene.truth.iter().filter(|(_, truth)| wanted(truth)).map(|(search, _)| *search).collect()
        })
    }
}

#[async_trait]
impl ReadRecords for BelievesCommands {
    async fn stored_record(&self, key: &Key) -> Result<Option<StoredRecord>, StoreError> {
        let found = self.inner.stored_record(key).await?;
        if key.kind != REPAIRS {
            return Ok(found);
        }
        let (revision, stored) = found.map_or((0, None), |found| (found.revision, found.body));
        let mut repairs = stored.and_then(|body| Repairs::deserialize(&body).ok()).unwrap_or_default();
        if self.access.has(UNRECORDED_DELETION) {
            repairs.deleted.extend(self.searches_with(|truth| truth.deleted));
        }
        if self.access.has(UNRECORDED_REPAIR) {
            let by = self.searches_with(|truth| truth.repairs.is_some()).into_iter();
            let by = by.map(|search_id| FileRef { search_id, file_id: FileId::from_uuid(Uuid::nil()) });
            repairs.files.extend(by.map(|by| RepairedFile { of: by, records: BTreeSet::new(), by }));
        }
        let body = serde_json::to_value(&repairs).ok();
        Ok(body.is_some().then_some(StoredRecord { revision, body, expires_at: None }))
    }
}
