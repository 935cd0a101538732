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
    /// The token of an event for another saga is granted to the partition that sends it.
    GrantedToSender,
    /// The token of a reply between sagas is granted to the saga that replies, not to the one that waits for it.
    ReplyTokenMoved,
    /// The token of an event for another saga is granted after the event is stored.
    GrantedAfterWrite,
    /// Each sending of a request to another saga grants its token again.
    GrantedWhenSent,
    /// All attempts at an event for another saga have the same token.
    AttemptsShareTokens,
    /// A copy of a grant that arrives after the partition was claimed adds its tokens again.
    CopyOfGrantAccepted,
}
