//! Each message takes effect once.
//!
//! Two ways lead there, for two kinds of handler:
//! - [`ledger`]: the partition claim. For a handler with state, such as the saga: whoever works in a partition
//!   holds its lease, and a message is admitted only while its token is in the partition's ledger item. A token
//!   leaves the item when its message is done with, so a duplicate is recognised at any age: there is no
//!   window after which it would count as new.
//! - [`filter`]: the filter pair. For a handler without state that may safely run twice: a cheap guard before
//!   it and a note after it; [`guard()`] puts both around a [`Handler`], together with its replies.
//!
//! # Why a slow worker can do no harm
//!
//! A worker may stall for longer than its lease, lose the partition to another worker, and wake up. The clock
//! decides only how soon that other worker may take over; what keeps the two apart does not depend on it:
//! - **It stores nothing over the other's work.** The saga's document is written on condition of the version
//!   that was loaded. If the other worker stored something, the version is another one, and the slow worker's
//!   write is refused. Its retry is a new attempt: it claims again, with a new attempt id and fresh tokens.
//! - **It does not build on the other's work with what it got before.** The document names the fence it was written
//!   under, and an attempt with an earlier fence refuses to decide on it: it may have loaded the document after the
//!   other worker stored it, so that the version fits, but its own fresh tokens are already on that worker's list of
//!   garbage.
//! - **Its tokens are not honoured.** Tokens are minted with the claim, but a reply that carries one is sent only
//!   from the document's outbox, and the document was not stored. So nobody will ever present them.
//! - **It releases nothing.** The fence grows with each claim, and a release is conditional on it.
//!
//! # Why a request takes effect once
//!
//! A client of a store repeats a request whose answer was late, and both copies may arrive, the second one much later. A
//! claim names the fence at which it is granted, and moves it; a release names the fence of its claim. So the second copy
//! of either meets another fence and changes nothing.
//!
//! # Why no token is removed that is still needed
//!
//! A release removes the tokens of the messages it is done with, and garbage: tokens of attempts (`a:`) that
//! were in the claim's answer and that the document *just stored by this very attempt* does not expect. Tokens
//! minted after the claim are not in its answer, so they are safe; tokens from before that a stored document
//! needs are expected by the current one, because each stored document builds on its predecessor. An attempt
//! that stored nothing cannot know what the current document expects, and removes only its own mints. Tokens of
//! entry points (`s:`) are never garbage: their messages may still be on the way.

pub mod filter;
pub mod guard;
pub mod ledger;

pub use filter::{Filter, RememberProcessed, Verdict};
pub use guard::{Asked, Done, Handler, HandlerError, guard};
pub use ledger::{
    Admission, Admitted, CheckTokens, Claim, ClaimPartition, GrantTokens, Release, Requirement, Tokens,
};
