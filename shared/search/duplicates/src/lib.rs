//! Finds records that describe the same work.
//!
//! # What it promises
//!
//! - **Candidates by key.** Two records are compared if they share one of about nine [keys](Fields::keys), so each
//!   record is compared with a few others, however many exist.
//! - **Explained marks.** [`compare`] applies a table. Each mark carries the matching line, a [`Reason`], and its
//!   certainty, a [`Tier`].
//! - **Independent of order.** [`marks`] is a pure function of records, pairs and reviewers' verdicts, not of the order
//!   in which they arrived.
//! - **Reviewers decide.** A reviewer's verdict on two records overrides the table.
//!
//! # What it deliberately does not do
//!
//! - No input or output: callers store keys, pairs and verdicts.
//! - No learning and no weights: each line of the table is right or wrong, and can be inspected.
//! - No removal and no merging of records.
//!
//! # Modules, in reading order
//!
//! - `fields`: the compared fields of a record, extracted by `text`, `title`, `place`, `kind` and
//!   `trials`.
//! - `keys`: selects the records to compare.
//! - `comparison`: compares two records value by value; `title_match` compares titles, `companions` distinguishes
//!   similar ones, and `position` the positions of one work and of several.
//! - `table` and `reason`: the conclusions, and their names.
//! - `group`: groups records into works, and marks the duplicates.

#![warn(clippy::missing_errors_doc)]

mod agreement;
mod companions;
mod comparison;
mod fields;
mod group;
mod journal;
mod keys;
mod kind;
mod place;
mod position;
mod reason;
mod table;
mod text;
mod title;
mod title_match;
mod trials;

pub use fields::{Content, Fields, VERSION};
pub use group::{Edge, Mark, Member, ReviewerDecision, Verdict, marks};
pub use reason::{Reason, Tier};
pub use table::compare;
/// The Unicode version of the text normalization; the standard library may have another one.
pub use unicode_normalization::UNICODE_VERSION;
