//! Streaming one file into studies.

use std::sync::Arc;
use std::task::Poll;

use futures::future::FutureExt;
use futures::poll;
use futures::stream::StreamExt;
use imports::messages::StartParsing;
use imports::{ContentsError, Fenced, PartBytes, Place, Progress, Quarantined, SearchId};
use jiff::{SignedDuration, Timestamp};
use messages::{Host, Message, Reporter, StoreError};
use references::{Checkpoint, Limits, Reader, Report};
use serde::Deserialize;

use super::ParseReferences;
use super::parts::{Found, Spot, Tally, place};
use super::pending::{BATCH_BYTES, Pending};

/// The maximum duration between two checks of the deadline while records are read. A function keeps five seconds after its
/// deadline to store what was read.
pub(super) const READ_FOR: SignedDuration = SignedDuration::from_millis(500);

/// The maximum number of outcomes that are taken at a time. A piece of a file that is read at once may hold some hundred thousand records of
/// a few bytes, and what is made of each takes half a kilobyte of memory.
pub(super) const AT_ONCE: usize = 1_024;

/// How many unreadable records the error of a refused file lists.
const TOLD: usize = 3;

/// Why a file was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// A store did not answer; another try may go better.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be read; no other try will.
    #[error(transparent)]
    Refused(#[from] references::Error),
    /// Hardly anything of it can be read, so it is probably of another format than the detected one.
    #[error(
        "{quarantined} of {records} records cannot be read, more than the {percent} % tolerated: {first}"
    )]
    Unreadable {
        quarantined: u64,
        records: u64,
        /// The percentage of unreadable records tolerated.
        percent: u8,
        /// The first of them, with their reasons.
        first: String,
    },
    /// It is packed, in a way that is refused.
    #[error(transparent)]
    Packed(archives::Error),
    /// A file inside, or a sheet, cannot be read; no other try will.
    #[error("{name:?}, which is inside: {error}")]
    Inside {
        /// Its path in the archive, or the name of the sheet.
        name: String,
        error: references::Error,
    },
    /// An archive in an archive.
    #[error("{what} is packed itself; unpack it and upload the files inside")]
    Nested {
        /// Its name, with what it is; or what it is alone, in a gzip file.
        what: String,
    },
    /// More reference files in one file than are read.
    #[error("it has more than {limit} reference files inside; upload them in several archives")]
    TooManyParts { limit: usize },
    /// A packed file without any reference file.
    #[error("it is {kind} with no reference file inside{reasons}")]
    NothingInside {
        /// With its article: `"a ZIP archive"`.
        kind: &'static str,
        /// Why what is inside is none, for the first of it, behind a colon.
        reasons: String,
    },
    /// There is no such object any more.
    #[error("the uploaded file is gone")]
    Gone,
}

impl From<ContentsError> for FileError {
    fn from(error: ContentsError) -> Self {
        match error {
            ContentsError::Store(error) => Self::Store(error),
            ContentsError::Refused(error) => Self::Packed(error),
            ContentsError::Gone => Self::Gone,
        }
    }
}

/// What an attempt came to.
pub(crate) enum Attempt {
    /// The file was read to its end.
    Whole(Tally),
    /// The time was over after this many records, all of them stored, and so is the place.
    UpTo(u64),
}

/// What is left of the bytes that a reader has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing that can be read.
    None,
    /// Some: the time was over before.
    Left,
}

/// The time that there is.
pub(crate) struct Time<'a> {
    pub(crate) host: &'a dyn Host,
    /// After it nothing is to be begun.
    pub(crate) deadline: Option<Timestamp>,
}

impl Time<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.host.is_past(self.deadline)
    }
}

impl ParseReferences {
    /// Reads a file into studies, from this place on.
    pub(crate) async fn parse_file(
        &self,
        message: &Message,
        command: &StartParsing,
        reporter: &Reporter,
        (held, spot): (Fenced, Option<Spot>),
        time: &Time<'_>,
    ) -> Result<Attempt, FileError> {
        let mut pending = Pending::new(message, command, held, spot.as_ref(), self.kept_unreadable);
        let tally = match self.look_inside(command, spot.as_ref()).await? {
            Found::Plain(stream) => {
                let reader = self.reader_at(spot.as_ref().map(|spot| &spot.within), self.limits);
                let mut bytes = PartBytes::Plain(stream);
                let report = self.read_part(&mut bytes, reader, &mut pending, reporter, time).await?;
                report.map(|report| Tally::of_plain(&report))
            }
            Found::Packed(contents) => {
                self.parse_parts(&contents, spot, &mut pending, reporter, time).await?
            }
        };
        let Some(tally) = tally else { return pending.paused() };
        self.store_all(&mut pending).await?;
        self.report(&mut pending, command.object.size_bytes, reporter).await;
        self.check(message.partition, command, &tally).await?;
        Ok(Attempt::Whole(tally))
    }

    /// Reads the bytes of a file that is not packed, or of one that is inside; none when the time was over before.
    pub(super) async fn read_part(
        &self,
        stream: &mut PartBytes,
        mut reader: Reader,
        pending: &mut Pending<'_>,
        reporter: &Reporter,
        time: &Time<'_>,
    ) -> Result<Option<Report>, FileError> {
        let mut bytes = Vec::with_capacity(self.push_bytes);
        while let Some(piece) = stream.next().await? {
            // Unpacking may return no bytes for a long time. Without a checkpoint, stopping would lose the work of this attempt.
            if piece.is_empty() && pending.reached.is_some() && time.is_over() {
                return Ok(None);
            }
            bytes.extend(piece);
            if bytes.len() < self.push_bytes {
                continue;
            }
            reader.feed(&bytes);
            bytes.clear();
            let place = place(stream, &reader);
            if self.read_on(&mut reader, pending, reporter, (time, place)).await? == Rest::Left
                || time.is_over()
            {
                return Ok(None);
            }
        }
        reader.feed(&bytes);
        reader.end();
        let place = place(stream, &reader);
        if self.read_on(&mut reader, pending, reporter, (time, place)).await? == Rest::Left {
            return Ok(None);
        }
        Ok(Some(reader.report()?))
    }

    /// Stores what can be read of the bytes that the reader has, or a part of it when the time is over and a place was
    /// reached. So the time that a piece of the file takes is bounded, whatever the number of its records.
    async fn read_on(
        &self,
        reader: &mut Reader,
        pending: &mut Pending<'_>,
        reporter: &Reporter,
        (time, place): (&Time<'_>, u64),
    ) -> Result<Rest, FileError> {
        loop {
            let (origin, studies) = (pending.origin(), &*self.studies);
            let (at_once, begun_at) = (pending.at_once, time.host.now());
            let items = reader.read_as(at_once, &|outcome| origin.item(studies, outcome))?;
            pending.pace(time.host.now().duration_since(begun_at));
            // Fewer than were asked for are all there are.
            let is_all = items.len() < at_once;
            pending.add(items)?;
            self.store(pending, self.studies.pace().records).await?;
            let over = time.is_over();
            if over || pending.is_due(reporter) {
                pending.stored().await?;
                self.reach(pending, reader.checkpoint()).await?;
                self.report(pending, place, reporter).await;
            }
            if is_all {
                return Ok(Rest::None);
            }
            if over && pending.reached.is_some() {
                return Ok(Rest::Left);
            }
        }
    }

    /// Where to go on. A place that cannot be understood is none: then what is stored of the file goes, and it is begun anew.
    pub(crate) async fn spot(
        &self,
        held: &mut Fenced,
        place: Option<&Place>,
    ) -> Result<Option<Spot>, StoreError> {
        let Some(Place::Within(place)) = place else { return Ok(None) };
        let spot = Spot::deserialize(place).ok();
        let spot = spot.filter(|spot| Reader::resume(self.limits, &spot.within).is_some());
        if spot.is_none() {
            *held = self.studies.discard(held, None).await?;
        }
        Ok(spot)
    }

    /// A reader that goes on at a place, or begins.
    pub(super) fn reader_at(&self, within: Option<&Checkpoint>, limits: Limits) -> Reader {
        let reader = within.and_then(|within| Reader::resume(limits, within));
        reader.unwrap_or_else(|| Reader::new(limits)).with_threads(self.threads)
    }

    /// Stores what is pending, batch by batch, as long as it is at least `least` records, or much of a file. The last batches
    /// may still be under way afterwards, so that the next records are read meanwhile.
    async fn store(&self, pending: &mut Pending<'_>, least: usize) -> Result<(), StoreError> {
        let pace = self.studies.pace();
        while pending.items.len() >= least.max(1) || pending.bytes >= BATCH_BYTES {
            let (studies, quarantined, bytes) = pending.next_batch(pace.records);
            pending.room_for(bytes, pace.calls).await?;
            let (store, held) = (Arc::clone(&self.studies), pending.held);
            let storing = async move { store.store_ready(&held, studies, quarantined).await.map(|()| bytes) };
            pending.storing.push_back(storing.boxed());
            pending.storing_bytes += bytes;
            // Begins it, and does not wait.
            while let Poll::Ready(Some(stored)) = poll!(pending.storing.next()) {
                pending.storing_bytes -= stored?;
            }
        }
        Ok(())
    }

    /// Stores everything that is pending.
    async fn store_all(&self, pending: &mut Pending<'_>) -> Result<(), StoreError> {
        self.store(pending, 1).await?;
        pending.stored().await
    }

    /// Remembers a place, if it is one, once everything before it is stored.
    async fn reach(
        &self,
        pending: &mut Pending<'_>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<(), StoreError> {
        let Some(checkpoint) = checkpoint.filter(|checkpoint| pending.is_new(checkpoint)) else {
            return Ok(());
        };
        self.store_all(pending).await?;
        let spot = Spot { within: checkpoint, packed: pending.part.clone() };
        let place = serde_json::to_value(&spot).map(Place::Within);
        let place = place.map_err(|error| StoreError::unusable("writing a place in a file down", error))?;
        self.reading.reach(&pending.held, &place).await?;
        pending.reached = Some(pending.records);
        Ok(())
    }

    async fn report(&self, pending: &mut Pending<'_>, bytes: u64, reporter: &Reporter) {
        pending.reported_at = Some(reporter.host.now());
        let progress = Progress { records: pending.records, bytes };
        if let Err(error) = self.progress.report(pending.search_id, pending.command.file_id, progress).await {
            let (function, correlation_id) = (reporter.function, pending.search_id);
            let (message_id, error) = (pending.message_id, error.chain());
            tracing::warn!(function, %correlation_id, %message_id, error, "reporting progress failed");
        }
    }

    /// Refuses a file with too many unreadable records.
    async fn check(
        &self,
        search_id: SearchId,
        command: &StartParsing,
        tally: &Tally,
    ) -> Result<(), FileError> {
        let &Tally { records, quarantined, .. } = tally;
        let percent = self.max_quarantined_percent;
        if u128::from(quarantined) * 100 <= u128::from(records) * u128::from(percent) {
            return Ok(());
        }
        let first = self.stored.quarantined(search_id, command.file_id, 0, TOLD).await?;
        let first = first.iter().map(|Quarantined { record, .. }| {
            format!("record {} (line {}): {}", record.number, record.line, record.reason)
        });
        let first = first.collect::<Vec<_>>().join("; ");
        Err(FileError::Unreadable { quarantined, records, percent, first })
    }
}
