//! Which records are the same work.
//!
//! # What it promises
//!
//! - **Found by keys.** Two records are compared when they share one of some eight [keys](Fields::keys), so a record is
//!   compared with a few others, however many there are.
//! - **Explained.** [`compare`] goes by a table. Whoever sees a mark is told the line that made it: a [`Reason`], and a
//!   [`Tier`] for how sure that is.
//! - **Whatever the order.** [`marks`] is a function of records, pairs and people's verdicts. Nothing in it depends on
//!   when they arrived.
//! - **People decide.** What somebody has said of two records stands above what the table says.
//!
//! # What it deliberately does not do
//!
//! - No input or output: where keys, pairs and verdicts are stored is for its callers.
//! - No learning and no weights: a line of the table is right or wrong, and can be looked at.
//! - Nothing is removed or merged.
//!
//! # Modules, in reading order
//!
//! - `fields`: what a record is compared by, read by `text`, `title` and `place`.
//! - `keys`: which records are compared.
//! - `alike`: what two records have in common, value by value.
//! - `table` and `reason`: what follows from that.
//! - `group`: which records are one work, and what each is marked with.

mod alike;
mod fields;
mod group;
mod keys;
mod place;
mod reason;
mod table;
mod text;
mod title;

pub use fields::{Content, Fields, VERSION};
pub use group::{Edge, Mark, Member, Said, Verdict, marks};
pub use reason::{Reason, Tier};
pub use table::compare;
/// The version of Unicode that texts are folded by, beside the one of the compiler.
pub use unicode_normalization::UNICODE_VERSION;
