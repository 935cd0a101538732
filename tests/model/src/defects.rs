//! What the check has to find, when it is there.

/// Something that the system around the saga does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// An attempt decides on a document that was written under a later fence than its own (decision 8).
    FenceIgnored,
    /// A message is dropped for what an earlier version of the document says.
    StaleDropBelieved,
    /// The claim of several messages requires no more than the token of the first.
    FirstTokenRequired,
    /// A ledger item is forgotten while its partition goes on.
    ItemForgottenEarly,
    /// Once a ledger item has expired, an entry point that repeats itself begins it anew.
    BegunAgain,
    /// The lease of a worker that died never runs out.
    LeaseWithoutEnd,
    /// An attempt that had too few tokens is made again with as few.
    NeedForgotten,
    /// A claim adds its tokens however many there are.
    RoomIgnored,
    /// A message is forgotten by the next change, although its token is there still.
    ForgottenWhileAdmitted,
    /// What an ended partition's document says of a message is believed without a claim.
    EndBelieved,
}
