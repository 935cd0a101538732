//! Deduplication: each message takes effect once.
//!
//! There are three mechanisms:
//! - [`ledger`]: the partition claim, for handlers with state, such as the saga. A worker in a partition holds its
//!   lease, and a message is admitted only while its token is in the partition's ledger item. A token leaves the item
//!   once its message is processed, so a duplicate is detected at any age: no window ends after which it would count as
//!   new.
//! - [`filter`]: the filter, for stateless handlers that may safely run twice. It checks a message before the handler
//!   and records it afterwards. [`guard()`] combines both with a [`Handler`] and its replies.
//! - [`entity`]: the ledger for a record of the application that messages change, without a saga.
//!
//! # Guarantees
//!
//! - A duplicate is detected at any age: no window ends after which it would count as new.
//! - Two workers never both take effect in one partition, even if the lease of one of them has ended.
//! - A request to the ledger that arrives twice or late takes effect once.
//!
//! A handler behind the [`filter`] may run twice for one message, so it has to be idempotent. The crate does not store
//! anything itself: adapters implement its ports.
//!
//! # Example
//!
//! The ledger item decides, and a store only replaces it on condition that it is unchanged:
//!
//! ```
//! use dedup::ledger::{Admission, Claim, ClaimCondition, Item, Release};
//! use jiff::{SignedDuration, Timestamp};
//! use messages::{AttemptId, PartitionKey, Token};
//! use uuid::Uuid;
//!
//! let (partition, now) = (PartitionKey::named("orders", "7"), Timestamp::UNIX_EPOCH);
//! let token = Token::minted_at_entry(partition, Uuid::from_u128(1));
//! let item = Item::with_tokens(None, &[token.clone()], now);
//!
//! // A worker receives the message and claims the partition.
//! let claim = |fence| Claim {
//!     partition,
//!     attempt: AttemptId::from_uuid(Uuid::from_u128(2)),
//!     now,
//!     lease: SignedDuration::from_secs(30),
//!     supersedes: None,
//!     requires: ClaimCondition::TokenPresent(token.clone()),
//!     new_tokens: Vec::new(),
//!     max_tokens: 100,
//!     fence,
//!     above: fence,
//!     until: now,
//! };
//! let (admission, item) = Item::claim(Some(item), &claim(0));
//! assert!(matches!(admission, Admission::Admitted(_)));
//!
//! // After its change it removes the token, so the message is a duplicate from now on.
//! let attempt = claim(0).attempt;
//! let remove = [token.clone()].into();
//! let release = Release { partition, attempt, fence: 1, remove, ended: false, until: None, now };
//! let item = item.and_then(|item| item.release(&release));
//! assert_eq!(Item::claim(item, &claim(1)).0, Admission::Duplicate);
//! ```
//!
//! # Why a slow worker can do no harm
//!
//! A worker may stall for longer than its lease, lose the partition to another worker, and resume. The clock only
//! decides how soon the other worker may take over; the separation of the two does not depend on it:
//! - **It does not overwrite the other's work.** The saga's document is written on condition of the version that was
//!   loaded. If the other worker stored a change, the version differs, and the slow worker's write is refused. Its
//!   retry is a new attempt: it claims again, with a new attempt id and new tokens.
//! - **It does not build on the other's work with outdated knowledge.** The document contains the fence that it was
//!   written under, and an attempt with a lower fence refuses to decide on it. Such an attempt may have loaded the
//!   document after the other worker stored it, so that the version fits, but the other worker treats its new tokens as
//!   garbage.
//! - **Its tokens are worthless.** Tokens are minted with the claim, but a reply that carries one is requested only
//!   from the document's outbox, and the document was not stored. Therefore, no message will ever present them.
//! - **It releases nothing.** The fence grows with each claim, and a release is conditional on it.
//!
//! # Why a request takes effect once
//!
//! A client of a store repeats a request whose answer is late, and both requests may arrive, the second one much later.
//! A claim contains the fence at which it is granted, and increments it; a release contains the fence of its claim.
//! Therefore, the second request finds another fence and changes nothing.
//!
//! # Why no token is removed that is still needed
//!
//! A release removes the tokens of the processed messages, and garbage: tokens of attempts (`a:`) that were in the
//! claim's answer and that the document *just stored by this very attempt* does not expect. Tokens that were minted
//! after the claim are not in its answer, so they are safe. Earlier tokens that a stored document needs are expected by
//! the current one, because each stored document builds on its predecessor. An attempt that stored nothing cannot know
//! which tokens the current document expects, and removes only its own. Tokens of entry points (`s:`) are never
//! garbage, because their messages may still be on their way.

#![warn(clippy::missing_errors_doc)]

pub mod entity;
pub mod filter;
pub mod guard;
pub mod ledger;

pub use entity::{Entities, Entry, Receipts, Visit};
pub use filter::{Filter, ProcessedMessages, Verdict};
pub use guard::{CommandMessage, Handler, HandlerError, HandlerResult, guard};
pub use ledger::{
    Admission, AdmittedClaim, CheckTokens, Claim, ClaimCondition, ClaimPartition, GrantTokens, Release,
    Tokens,
};
