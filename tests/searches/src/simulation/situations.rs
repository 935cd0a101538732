//! Names of the defects and situations, and the constants of the simulated deployment.

pub(super) const KEY_PREFIX: &str = "uploads/";

/// The number of studies stored together.
pub(super) const BATCH: usize = 2;

/// Defect: a search waits indefinitely for the outcome of its files.
pub(super) const NO_PARSE_DEADLINE: &str = "no parse deadline";
/// Defect: a search that has waited long enough ends without scanning the bucket.
pub(super) const NO_SCAN: &str = "no look before the timeout";

/// The reason for which a file without metadata fails. It cannot occur in an announced search, because a client that
/// uploads with a form sends the metadata.
pub(super) const NO_METADATA: &str = "the upload's metadata has no";

/// The situations to cover in addition to faults at calls.
pub(super) const CANCELLED: &str = "a search is cancelled while its files are being read";
pub(super) const LATE_MARK: &str = "a mark comes after one that has seen more";
pub(super) const OVERTAKEN: &str = "a write is refused because the studies of its file were deleted";
pub(super) const RESTARTED: &str = "another reader restarts a file";
pub(super) const STREAM_BREAKS: &str = "a stream breaks off after its first piece";
pub(super) const MANY_BATCHES: &str = "a file of many batches is read to its end";
pub(super) const READ_ON: &str = "a file is read on from a place in it";
pub(super) const HALF_UNREADABLE: &str = "a file is refused after some of its studies were stored";
pub(super) const KEY_REPEATED: &str = "a request under a key is answered again";
pub(super) const KEY_SHARED: &str = "two different requests under one key are answered";
pub(super) const BY_HAND_COMPLETES: &str = "a search completes whose files were put into the bucket by hand";
pub(super) const BY_HAND_ENDS: &str = "a search ends that was never announced";
pub(super) const BY_HAND_REFUSED: &str = "a file without metadata fails a search that was announced";

pub(super) const EXPORTED: &str = "an export is promised";
pub(super) const EXPORTED_TOGETHER: &str = "an export of two searches is promised";
pub(super) const REPAIRED: &str = "a search is repaired";
pub(super) const DECIDED: &str = "a reviewer decides about two studies";
pub(super) const DELETED: &str = "a search is deleted";
pub(super) const REPORTED: &str = "the check reports studies that no search counts";
