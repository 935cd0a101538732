//! Defects that the check has to find.

/// A defect of the system around the saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// An attempt decides on a document that was written under a later fence than its own (decision 8).
    FenceIgnored,
    /// A message is dropped because of an earlier version of the document.
    StaleDropBelieved,
    /// The claim for several messages requires only the token of the first.
    FirstTokenRequired,
    /// A ledger item is deleted while its partition is still active.
    ItemForgottenEarly,
    /// After its ledger item has expired, an entry point that retries starts the partition again.
    BegunAgain,
    /// The lease of a crashed worker never expires.
    LeaseWithoutEnd,
    /// An attempt that had too few tokens is repeated with the same number.
    NeedForgotten,
    /// A claim adds its tokens without regard to the capacity.
    RoomIgnored,
    /// The record of a processed message is dropped by the next change although the message's token still exists.
    ForgottenWhileAdmitted,
    /// The document of an ended partition is trusted without a claim.
    EndBelieved,
    /// A message that the state machine postpones is acknowledged.
    PostponedAcknowledged,
}
