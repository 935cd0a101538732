//! Streaming one file into studies.

use std::sync::Arc;
use std::task::Poll;

use futures::future::FutureExt;
use futures::poll;
use futures::stream::StreamExt;
use imports::{PartBytes, Progress, QuarantinedRecord, ReadingStatus};
use messages::StoreError;
use references::{Checkpoint, Limits, Reader, Report};
use serde::Deserialize;

use super::ParseReferences;
use super::attempt::{AttemptOutcome, FileError, FileRead, ResumePoint};
use super::parts::{OpenedFile, bytes_read};
use super::pending::{BATCH_BYTES, PendingRecords};
use super::stats::FileStats;

/// The maximum number of unreadable records that the error of a rejected file lists.
const MAX_REASONS_LISTED: usize = 3;

/// The state of the bytes that a reader has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remaining {
    /// All complete records were read.
    None,
    /// The deadline has passed before all files were read.
    Some,
}

impl ParseReferences {
    /// Reads a file into studies, from the resume point on.
    pub(super) async fn parse_file(
        &self,
        read: &FileRead<'_>,
        resume: Option<ResumePoint>,
    ) -> Result<AttemptOutcome, FileError> {
        let mut pending = PendingRecords::new(read, resume.as_ref(), self.kept_unreadable);
        let stats = match self.open(read, resume.as_ref()).await? {
            OpenedFile::Plain(stream) => {
                let reader = self.reader_at(resume.as_ref().map(|resume| &resume.within), self.limits);
                let mut bytes = PartBytes::Plain(stream);
                let report = self.read_part(&mut bytes, reader, &mut pending).await?;
                report.map(|report| FileStats::of_plain(&report))
            }
            OpenedFile::Packed(contents) => self.parse_parts(&contents, resume, &mut pending).await?,
        };
        let Some(stats) = stats else { return pending.paused() };
        self.store_all(&mut pending).await?;
        self.report(&mut pending, read.command.object.size_bytes).await;
        self.check(read, &stats).await?;
        Ok(AttemptOutcome::Completed(stats))
    }

    /// Reads the bytes of a plain file, or of one part; returns `None` if the deadline has passed before the end.
    pub(super) async fn read_part(
        &self,
        stream: &mut PartBytes,
        mut reader: Reader,
        pending: &mut PendingRecords<'_>,
    ) -> Result<Option<Report>, FileError> {
        let deadline = pending.read.deadline;
        let mut bytes = Vec::with_capacity(self.push_bytes);
        while let Some(piece) = stream.next().await? {
            // Unpacking may return no bytes for a long time. Without a checkpoint, stopping would lose the work of this
            // attempt.
            if piece.is_empty() && pending.records_checkpointed.is_some() && deadline.has_passed() {
                return Ok(None);
            }
            bytes.extend(piece);
            if bytes.len() < self.push_bytes {
                continue;
            }
            reader.feed(&bytes);
            bytes.clear();
            let position = bytes_read(stream, &reader);
            if self.read_records(&mut reader, pending, position).await? == Remaining::Some
                || deadline.has_passed()
            {
                return Ok(None);
            }
        }
        reader.feed(&bytes);
        reader.end();
        let position = bytes_read(stream, &reader);
        if self.read_records(&mut reader, pending, position).await? == Remaining::Some {
            return Ok(None);
        }
        Ok(Some(reader.report()?))
    }

    /// Reads and stores the records of the bytes that the reader has. Stops early if the deadline has passed, even
    /// within a record. `position` is the number of bytes of the file that have been read.
    ///
    /// The first record of an attempt is always read to its end, because the next attempt would begin with it again.
    /// The budget of a record bounds the time that this takes.
    async fn read_records(
        &self,
        reader: &mut Reader,
        pending: &mut PendingRecords<'_>,
        position: u64,
    ) -> Result<Remaining, FileError> {
        let deadline = pending.read.deadline;
        loop {
            let (origin, studies) = (pending.origin(), &*self.studies);
            let (batch, started_at) = (pending.read_batch, deadline.host.now());
            let make = |outcome| origin.item(studies, outcome);
            let before = reader.checkpoint().filter(|before| pending.is_new(before));
            let items = match &before {
                Some(_) => reader.read_until(batch, &make, &pending.read.stop())?,
                None => Some(reader.read_as(batch, &make)?),
            };
            let Some(items) = items else {
                pending.stored().await?;
                self.save_checkpoint(pending, before).await?;
                return Ok(Remaining::Some);
            };
            pending.adapt_batch(deadline.host.now().duration_since(started_at));
            // A short read means there is nothing left.
            let is_all = items.len() < batch;
            pending.add(items)?;
            self.store(pending, self.studies.batching().records).await?;
            let has_passed = deadline.has_passed();
            if has_passed || pending.is_report_due(is_all) {
                pending.stored().await?;
                self.save_checkpoint(pending, reader.checkpoint()).await?;
                self.report(pending, position).await;
            }
            if is_all {
                return Ok(Remaining::None);
            }
            if has_passed && pending.records_checkpointed.is_some() {
                return Ok(Remaining::Some);
            }
        }
    }

    /// Returns the resume point. If the stored one cannot be used, the stored records of the file are deleted and the
    /// attempt starts at the beginning.
    pub(super) async fn resume_point(
        &self,
        read: &mut FileRead<'_>,
        place: Option<&ReadingStatus>,
    ) -> Result<Option<ResumePoint>, StoreError> {
        let Some(ReadingStatus::Within(place)) = place else { return Ok(None) };
        let resume = ResumePoint::deserialize(place).ok();
        let resume = resume.filter(|resume| Reader::resume(self.limits, &resume.within).is_some());
        if resume.is_none() {
            read.fence = self.studies.discard(&read.fence, None).await?;
        }
        Ok(resume)
    }

    /// Returns a reader that resumes at a checkpoint, or starts at the beginning.
    pub(super) fn reader_at(&self, within: Option<&Checkpoint>, limits: Limits) -> Reader {
        let reader = within.and_then(|within| Reader::resume(limits, within));
        reader.unwrap_or_else(|| Reader::new(limits)).with_threads(self.threads)
    }

    /// Stores pending records in batches while there are at least `least` of them, or many bytes. The last batches may
    /// still be in progress when it returns, so that the next records are read concurrently.
    async fn store(&self, pending: &mut PendingRecords<'_>, least: usize) -> Result<(), StoreError> {
        let batching = self.studies.batching();
        while pending.items.len() >= least.max(1) || pending.bytes >= BATCH_BYTES {
            let (studies, quarantined, bytes) = pending.next_batch(batching.records);
            pending.wait_for_capacity(bytes, batching.calls).await?;
            let (store, fence) = (Arc::clone(&self.studies), pending.read.fence);
            let storing =
                async move { store.store_prepared(&fence, studies, quarantined).await.map(|()| bytes) };
            pending.storing.push_back(storing.boxed());
            pending.storing_bytes += bytes;
            // Polls once, which starts the write, without waiting for it.
            while let Poll::Ready(Some(stored)) = poll!(pending.storing.next()) {
                pending.storing_bytes -= stored?;
            }
        }
        Ok(())
    }

    /// Stores all pending records and waits for the writes.
    async fn store_all(&self, pending: &mut PendingRecords<'_>) -> Result<(), StoreError> {
        self.store(pending, 1).await?;
        pending.stored().await
    }

    /// Saves a checkpoint, if it is a new one, once all records before it are stored.
    async fn save_checkpoint(
        &self,
        pending: &mut PendingRecords<'_>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<(), StoreError> {
        let Some(checkpoint) = checkpoint.filter(|checkpoint| pending.is_new(checkpoint)) else {
            return Ok(());
        };
        self.store_all(pending).await?;
        let resume = ResumePoint { within: checkpoint, packed: pending.part.clone() };
        let place = serde_json::to_value(&resume).map(ReadingStatus::Within);
        let place = place.map_err(|error| StoreError::unusable("serializing a checkpoint", error))?;
        self.attempts.save(&pending.read.fence, &place).await?;
        pending.records_checkpointed = Some(pending.records);
        Ok(())
    }

    async fn report(&self, pending: &mut PendingRecords<'_>, bytes: u64) {
        let FileRead { message, command, reporter, .. } = pending.read;
        pending.reported_at = Some(reporter.host.now());
        let progress = Progress { records: pending.records, bytes };
        if let Err(error) = self.progress.report(message.partition, command.file_id, progress).await {
            let (function, correlation_id) = (reporter.function, message.partition);
            let (message_id, error) = (message.id, error.chain());
            tracing::warn!(function, %correlation_id, %message_id, error, "reporting progress failed");
        }
    }

    /// Rejects a file with too many unreadable records.
    async fn check(&self, read: &FileRead<'_>, stats: &FileStats) -> Result<(), FileError> {
        let &FileStats { records, quarantined, .. } = stats;
        let percent = self.max_quarantined_percent;
        if u128::from(quarantined) * 100 <= u128::from(records) * u128::from(percent) {
            return Ok(());
        }
        let first = self
            .stored
            .quarantined(read.message.partition, read.command.file_id, 0, MAX_REASONS_LISTED)
            .await?;
        let first = first.iter().map(|QuarantinedRecord { record, .. }| {
            format!("record {} (line {}): {}", record.number, record.line, record.reason)
        });
        let first = first.collect::<Vec<_>>().join("; ");
        Err(FileError::Unreadable { quarantined, records, percent, first })
    }
}
