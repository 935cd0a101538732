//! What is exported of a search: all studies of its files, a line of JSON each.

use std::sync::Arc;

use futures::stream::{self, Stream};
use imports::{ParsedFile, ReadStudies, SearchId};
use messages::StoreError;
use messages::store::chain;

use crate::start_upload::http::{RecordPlace, study_lines};

/// An export, of which the next piece is made when the one before is sent. Its memory does not grow with the studies.
pub(crate) struct Export {
    studies: Arc<dyn ReadStudies>,
    search: SearchId,
    files: Vec<ParsedFile>,
    /// After which it goes on, unless it has ended.
    place: Option<RecordPlace>,
}

impl Export {
    /// Of these files, which were read to their end.
    pub(crate) fn of(studies: Arc<dyn ReadStudies>, search: SearchId, files: Vec<ParsedFile>) -> Self {
        Self { studies, search, files, place: Some(RecordPlace::default()) }
    }

    /// What comes next, some 256 KB; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(after) = self.place.take() else { return Ok(None) };
        let (lines, next) = study_lines(&*self.studies, self.search, &self.files, after).await?;
        self.place = next;
        Ok(Some(lines))
    }

    /// All of it. A store that does not answer any more ends it before its end, with an error.
    pub(crate) fn pieces(self) -> impl Stream<Item = Result<Vec<u8>, StoreError>> {
        stream::try_unfold(self, async |mut export| {
            let piece = export.next().await.inspect_err(|error| {
                tracing::error!(error = chain(error), "an export broke off");
            })?;
            Ok(piece.map(|piece| (piece, export)))
        })
    }
}
