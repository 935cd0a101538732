//! Deleting the stored records of one file.

use imports::{FileRef, Jobs, ParseAttempts, ProjectId, ReadingStatus, SearchId, WriteStudies};
use jiff::Timestamp;
use messages::StoreError;
use outbox::ReadRecords;

use crate::Repairs;
use crate::marking::DuplicateMarking;

/// The index and the reason of the reply of an attempt whose file was deleted. The search no longer waits for this
/// reply.
const REPLY: usize = 3;
const REASON: &str = "its stored records were deleted";

/// The value of `compared` after the studies are deleted. Stores have signed integers.
const ALL: u64 = i64::MAX.unsigned_abs();

/// Returns whether the deletion of a search is recorded.
///
/// # Errors
/// Returns an error if a store is unavailable or contains data that this version cannot read.
pub async fn is_deleted(
    jobs: &Jobs,
    records: &dyn ReadRecords,
    search: SearchId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    jobs.views.documents.reach_latest_data(search, now).await?;
    if jobs.views.written.view(search).await?.is_some_and(|view| view.is_removed()) {
        return Ok(true);
    }
    let original = jobs.job(search).await?.and_then(|job| job.repairs).unwrap_or(search);
    Ok(Repairs::read(records, original).await?.deleted.contains(&search))
}

/// Returns whether the stored records of a file are deleted. A deletion that is repeated ignores such files.
pub async fn is_file_deleted(attempts: &dyn ParseAttempts, of: FileRef) -> Result<bool, StoreError> {
    let place = attempts.place(of.search_id, of.file_id).await?;
    Ok(matches!(place, Some(ReadingStatus::Refused { compared: ALL, .. })))
}

/// Deletes the stored records of a file permanently and updates the marks of the studies that were compared with it.
/// Returns `false` if the deadline passed before the end. The call is idempotent.
///
/// # Errors
/// Returns an error if a store is unavailable. The call can be repeated.
pub async fn delete_file(
    studies: &dyn WriteStudies,
    attempts: &dyn ParseAttempts,
    duplicates: &DuplicateMarking,
    project: ProjectId,
    of: FileRef,
    has_passed: impl Fn() -> bool + Sync,
) -> Result<bool, StoreError> {
    let FileRef { search_id: search, file_id: file } = of;
    let deleted = |compared| ReadingStatus::Refused { reason: REASON.to_owned(), reply: REPLY, compared };
    let after = match attempts.place(search, file).await? {
        Some(ReadingStatus::Refused { compared, .. }) if compared != ALL => compared,
        // Studies may have returned after an earlier deletion, by a restore.
        Some(ReadingStatus::Refused { .. } | ReadingStatus::End { .. } | ReadingStatus::Within(_)) | None => {
            0
        }
    };
    // Unlist the file first, so that no new mark names its studies. Afterwards, remove the marks that refer to the
    // file, and finally its studies.
    studies.withdraw(search, file, &deleted(after)).await?;
    if let Some(after) = duplicates.file_removed(project, of, after, has_passed).await? {
        studies.withdraw(search, file, &deleted(after)).await?;
        return Ok(false);
    }
    studies.remove(search, file, &deleted(after)).await?;
    // Recorded last, because the studies of a file are deleted in several transactions.
    studies.withdraw(search, file, &deleted(ALL)).await?;
    Ok(true)
}
