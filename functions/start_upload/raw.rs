//! The text that a record was read from, as it is in the uploaded file.

use std::ops::Range;

use futures::TryStreamExt;
use imports::ParsedFile;
use messages::StoreError;
use references::Encoding;

use super::StartUpload;

/// The most of a record that is shown, in bytes of its file.
pub const MAX_RAW_BYTES: usize = 256 * 1024;

const CHANGED: &str = "the uploaded file has changed since it was read";

/// The text of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raw {
    /// All of it, or its beginning.
    Text {
        /// The text, decoded.
        text: String,
        /// Whether it is the beginning of [`MAX_RAW_BYTES`] alone.
        truncated: bool,
    },
    /// It cannot be shown any more, for this reason.
    Missing(&'static str),
}

impl StartUpload {
    /// The text at some bytes of a file in the encoding that it was read in.
    ///
    /// # Errors
    /// When the store of the files does not answer.
    pub async fn raw(
        &self,
        file: &ParsedFile,
        encoding: &str,
        bytes: Option<Range<u64>>,
    ) -> Result<Raw, StoreError> {
        let Some(Range { start, end }) = bytes else {
            return Ok(Raw::Missing(
                "an earlier release stored the study, and did not note where it is in its file",
            ));
        };
        if end > file.object.size_bytes {
            return Ok(Raw::Missing(CHANGED));
        }
        if start == end {
            return Ok(Raw::Text { text: String::new(), truncated: false });
        }
        let Some(mut pieces) = self.objects.open(&file.object, start).await? else {
            return Ok(Raw::Missing("the uploaded file is gone"));
        };
        let wanted = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let most = wanted.min(MAX_RAW_BYTES);
        let mut record = Vec::new();
        while record.len() < most
            && let Some(piece) = pieces.try_next().await?
        {
            record.extend_from_slice(piece.get(..most - record.len()).unwrap_or(&piece));
        }
        if record.len() < most {
            return Ok(Raw::Missing(CHANGED));
        }
        let truncated = most < wanted;
        let encoding = Encoding::named(encoding).unwrap_or(Encoding::Utf8);
        Ok(Raw::Text { text: encoding.text(&record, truncated), truncated })
    }
}
