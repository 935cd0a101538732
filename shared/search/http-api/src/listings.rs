//! Listings of the studies, duplicates and unreadable records of a search's files.

use async_trait::async_trait;
use imports::{
    DamagedRecord, Duplicate, FileRef, ParsedFile, QuarantinedRecord, ReadStudies, SearchId, Selection,
    Study, Tier,
};
use messages::StoreError;
use serde_json::value::RawValue;

use super::page::{Listing, READ_BYTES, READ_RECORDS};
use super::study::{PairView, UnreadView};
use service::selection::{ReadLimit, StudySelection, select};
use service::study_view::{StudyView, to_json};
use service::{SearchRepairs, SearchService};

/// The studies of a search.
pub(super) struct Studies<'a> {
    pub(super) stored: &'a dyn ReadStudies,
    pub(super) search: SearchId,
    pub(super) selection: StudySelection,
}

#[async_trait]
impl Listing for Studies<'_> {
    type Item = Study;

    async fn read(&self, file: &ParsedFile, after: u64, limit: usize) -> Result<Vec<Study>, StoreError> {
        let file = FileRef::new(self.search, file.file_id);
        select(self.stored, file, &self.selection, ReadLimit { after, limit, bytes: READ_BYTES }).await
    }

    fn record(study: &Study) -> u64 {
        study.record
    }

    async fn show(&self, file: &ParsedFile, study: Study) -> Result<Option<Box<RawValue>>, StoreError> {
        if !self.selection.includes(&study) {
            return Ok(None);
        }
        let view = StudyView::of(file.position, study).within(&file.parts);
        to_json(&view.bounded()?).map(Some)
    }
}

/// The duplicates of a search, each with the study that it repeats.
pub(super) struct Pairs<'a> {
    pub(super) service: &'a SearchService,
    pub(super) search: SearchId,
    /// The minimum certainty of the duplicates.
    pub(super) least: Tier,
    /// Their maximum certainty.
    pub(super) most: Tier,
}

#[async_trait]
impl Listing for Pairs<'_> {
    type Item = Study;

    fn batch(&self, wanted: usize) -> usize {
        // Most duplicates are certain, so many of them have to be skipped.
        if self.most < Tier::Certain { READ_RECORDS } else { wanted }
    }

    async fn read(&self, file: &ParsedFile, after: u64, limit: usize) -> Result<Vec<Study>, StoreError> {
        let selection = Selection { marked: Some(self.least), after, limit, bytes: READ_BYTES };
        self.service.studies.select(self.search, file.file_id, selection).await
    }

    fn record(study: &Study) -> u64 {
        study.record
    }

    /// Loads originals one by one, since two studies may each have the maximum record size. A damaged original is
    /// absent.
    async fn show(&self, file: &ParsedFile, study: Study) -> Result<Option<Box<RawValue>>, StoreError> {
        let Some(duplicate) = study.duplicate.filter(|mark| mark.tier <= self.most) else { return Ok(None) };
        let Duplicate { search_id, file_id, record, .. } = duplicate;
        let original = match self.service.study(search_id, file_id, record).await {
            Err(error) if DamagedRecord::of(&error).is_some() => None,
            loaded => loaded?,
        };
        let original = original.map(|original| StudyView::of(duplicate.position, original).bounded());
        let study = StudyView::of(file.position, study).within(&file.parts).bounded()?;
        to_json(&PairView { search_id: self.search.as_uuid(), study, original: original.transpose()? })
            .map(Some)
    }
}

/// The records of a search that could not be read.
pub(super) struct UnreadRecords<'a> {
    pub(super) service: &'a SearchService,
    pub(super) search: SearchId,
    pub(super) known: SearchRepairs,
}

#[async_trait]
impl Listing for UnreadRecords<'_> {
    type Item = QuarantinedRecord;

    async fn read(
        &self,
        file: &ParsedFile,
        after: u64,
        limit: usize,
    ) -> Result<Vec<QuarantinedRecord>, StoreError> {
        self.service.studies.quarantined(self.search, file.file_id, after, limit).await
    }

    fn record(unread: &QuarantinedRecord) -> u64 {
        unread.record.number
    }

    async fn show(
        &self,
        file: &ParsedFile,
        unread: QuarantinedRecord,
    ) -> Result<Option<Box<RawValue>>, StoreError> {
        to_json(&UnreadView::of(file.position, unread, &self.known).within(&file.parts)).map(Some)
    }
}
