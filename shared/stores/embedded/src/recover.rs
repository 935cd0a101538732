//! Recovery after a crash, and the deletion of expired data.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use messages::StoreError;
use outbox::records::KEPT_AFTER_EXPIRY;
use rusqlite::{Connection, params};

use crate::failures;
use crate::fair_queueing;
use crate::fault::Fault;
use crate::folder::{Folder, ObjectFile, ObjectName, is_file, remove};
use crate::ledger;
use crate::processed;
use crate::records;
use crate::value::nanos;
use crate::{Lock, Store};

/// The result of a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Messages in flight that became visible again.
    pub messages: usize,
    /// Partitions whose lease was ended.
    pub leases: usize,
    /// Outbox entries whose claim was ended.
    pub claims: usize,
    /// Removed files of unfinished uploads.
    pub files: usize,
    /// Files of objects that the database does not list. These files are not changed, because the database may have
    /// been restored from an earlier backup.
    pub unlisted: usize,
}

/// The numbers of deleted expired rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Documents of partitions that ended long ago.
    pub sagas: usize,
    /// Ledger items.
    pub partitions: usize,
    /// Keys of processed messages.
    pub processed: usize,
    /// Records of sessions.
    pub sessions: usize,
    /// Records of the application that were removed or have expired some days ago.
    pub records: usize,
    /// Permissions to upload.
    pub grants: usize,
    /// Closed failures.
    pub failures: usize,
}

impl Store {
    /// Works like [`Store::recover`], for a worker of this process that was stopped: uploads that this process is
    /// receiving are left unchanged.
    pub async fn release_held(&self, lock: &Lock) -> Result<RecoveryReport, StoreError> {
        Ok(self.release_all(lock).await?.0)
    }

    /// Releases everything that a dead worker held, so that its timeouts delay no one: messages in flight become
    /// visible, leases and outbox claims end, stored uploads are moved to their paths, and files of unfinished uploads
    /// are removed. Other files in the folder are not changed.
    ///
    /// The lock proves that the worker is dead: only its holder works in the directory. Correctness does not depend on
    /// that, because leases, claims and visibility timeouts only save work. The guards against a worker that is still
    /// alive stay in place: the version of the document, the fence of the partition, the tokens, and the receipts,
    /// which match no later delivery. The receive count of a message stays too, so a message that crashes its worker
    /// every time is still dead-lettered.
    ///
    /// Call this before the process accepts uploads: a file that is being written is not listed yet.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable, or the lock belongs to another directory.
    pub async fn recover(&self, lock: &Lock) -> Result<RecoveryReport, StoreError> {
        let doing = "recovering the data directory";
        let (mut recovered, named) = self.release_all(lock).await?;
        let objects = self.folder().objects();
        (recovered.files, recovered.unlisted) = tidy(self.folder(), &named)
            .await
            .map_err(|error| StoreError::unavailable(format!("{doing} {}", objects.display()), error))?;
        if recovered.unlisted > 0 {
            let (folder, files) = (objects.display(), recovered.unlisted);
            tracing::warn!(%folder, files, "files are not listed in the database, and are left alone");
        }
        Ok(recovered)
    }

    async fn release_all(&self, lock: &Lock) -> Result<(RecoveryReport, BTreeSet<ObjectName>), StoreError> {
        let doing = "releasing what a dead worker held";
        if lock.dir() != self.dir() {
            return Err(StoreError::unusable(doing, "the lock is that of another directory"));
        }
        let now = self.now();
        let released = self.threads().write(doing.to_owned(), move |db| release(db, now)).await?;
        self.sends().notify();
        Ok(released)
    }

    /// Deletes all data that has expired at `now`. Reads check the expiry themselves, so this only saves space; the
    /// worker that sweeps the outboxes calls it periodically. A document with pending outbox entries stays.
    pub async fn purge(&self, now: Timestamp) -> Result<PurgeReport, StoreError> {
        let settled = self.settings().outbox_retention;
        self.threads().write("deleting expired data".to_owned(), move |db| purge(db, now, settled)).await
    }
}

fn release(db: &Connection, now: Timestamp) -> Result<(RecoveryReport, BTreeSet<ObjectName>), Fault> {
    let messages = fair_queueing::put_all_back(db, now)?;
    let leases = db.execute(
        "UPDATE ledger SET item = json_set(item, '$.holder', NULL)
         WHERE json_extract(item, '$.holder') IS NOT NULL",
        [],
    )?;
    // The claim of an entry that was taken over is also the time of its next attempt.
    db.execute("UPDATE outbox SET next_attempt_at = due_at WHERE next_attempt_at = claimed_until", [])?;
    let claims = db.execute(
        "UPDATE outbox SET claimed_until = NULL,
            ready_at = CASE WHEN poisoned THEN NULL ELSE max(due_at, next_attempt_at) END
         WHERE claimed_until IS NOT NULL",
        [],
    )?;
    let named = db
        .prepare_cached("SELECT file FROM object")?
        .query_map([], |row| row.get::<_, String>(0))?
        // Other names belong to no file of this program.
        .filter_map(|name| name.map(|name| ObjectName::parse(&name)).transpose())
        .collect::<Result<_, _>>()?;
    Ok((RecoveryReport { messages, leases, claims, ..RecoveryReport::default() }, named))
}

/// Deletes only unfinished uploads, which were never confirmed to a client. Returns their number and the number of
/// objects that the database does not list.
async fn tidy(folder: &Folder, named: &BTreeSet<ObjectName>) -> std::io::Result<(usize, usize)> {
    let (mut removed, mut unlisted) = (0, 0);
    let mut files = tokio::fs::read_dir(folder.objects()).await?;
    while let Some(file) = files.next_entry().await? {
        if !file.file_type().await?.is_file() {
            continue;
        }
        match file.file_name().to_str().and_then(ObjectFile::of) {
            Some(ObjectFile::Unfinished(name)) if named.contains(&name) => {
                let (stored, unfinished) = folder.object(name);
                if !is_file(&stored)? {
                    tokio::fs::rename(unfinished, stored).await?;
                }
            }
            Some(ObjectFile::Unfinished(_)) => {
                remove(&file.path()).await;
                removed += 1;
            }
            Some(ObjectFile::Object(name)) if !named.contains(&name) => unlisted += 1,
            Some(ObjectFile::Object(_)) | None => {}
        }
    }
    Ok((removed, unlisted))
}

pub(crate) const PURGE_SAGAS: &str = "DELETE FROM saga WHERE expires_at <= ?1 AND NOT EXISTS
    (SELECT 1 FROM outbox WHERE outbox.owner = 'saga' AND outbox.owner_id = saga.search_id)";

pub(crate) const PURGE_SESSIONS: &str = "DELETE FROM session WHERE at <= ?1 AND NOT EXISTS
    (SELECT 1 FROM outbox WHERE outbox.owner = 'session' AND outbox.owner_id = session.session_id)";

fn purge(db: &Connection, now: Timestamp, settled: SignedDuration) -> Result<PurgeReport, Fault> {
    let old = now.checked_sub(settled).unwrap_or(Timestamp::MIN);
    let delete = |sql: &str, before: Timestamp| db.prepare_cached(sql)?.execute(params![nanos(before)]);
    Ok(PurgeReport {
        sagas: delete(PURGE_SAGAS, now)?,
        partitions: delete(ledger::PURGE, now)?,
        processed: delete(processed::PURGE, now)?,
        sessions: delete(PURGE_SESSIONS, old)?,
        records: delete(records::PURGE, now.checked_sub(KEPT_AFTER_EXPIRY).unwrap_or(Timestamp::MIN))?,
        grants: delete("DELETE FROM upload_grant WHERE expires_at <= ?1", now)?,
        failures: failures::purge(db, now)?,
    })
}
