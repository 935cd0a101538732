//! Reads the reference files that systematic reviewers export from literature databases.
//!
//! # What it promises
//!
//! - **Push parsing.** [`Reader::push`] takes the next bytes, however they are cut, and returns the records
//!   that became complete. The same bytes give the same outcomes in any chunking.
//! - **Content decides.** Encoding and format are detected from the first [`DETECTION_WINDOW`] bytes, never
//!   from a file name.
//! - **No record is lost silently.** Every record of the file is either [`Outcome::Read`] or
//!   [`Outcome::Quarantined`] with a reason and an excerpt, and carries its number, its first line and its
//!   exact byte range in the original file.
//! - **Bounded memory.** What is held at once is the detection window, the chunk being pushed and one record;
//!   [`Limits`] are enforced while streaming.
//! - **Bounded work.** The bytes that are scanned for a record are counted and limited in proportion to its size ([`work`]).
//!   A record that exceeds its budget is quarantined.
//! - **No panics**, whatever the bytes, and no unsafe code.
//!
//! # What it deliberately does not do
//!
//! - No input or output, no async runtime: the caller fetches bytes and stores outcomes.
//! - No deduplication and no guesses: values are tidied (white space, DOI prefixes). What has no field stays in
//!   [`Reference::extra`], and so does what was done about a record that is damaged, under `repaired`.
//! - No DTDs: an XML file with a DOCTYPE is refused, so no entity is ever defined or expanded. Only the external ones
//!   that PubMed and publishers write are skipped, and never fetched.
//! - No compressed files, spreadsheets or PDFs; those are refused by name, with advice on what to do, unless the caller has
//!   unpacked them before, as `archives` does
//!   ([`Error::Binary`]).
//!
//! # Modules, in reading order
//!
//! - `reference`, `outcome`, `format`, `error`: the vocabulary.
//! - `reader`: the public push parser; detects first, then hands over to `stream`.
//! - `detect` and `encoding`: what the file is and how its bytes become text.
//! - `stream`: one buffer, one splitter, and positions in the original file.
//! - `batch`: the records of one push, read on several threads while more of them are found.
//! - `split`: where records begin and end, per format, on raw bytes.
//! - `read`: one record's text to a [`Reference`], by a table for each format.
//! - `gaps`: the text that belongs to no record, so that it can be named.
//! - `work`: counts and limits the bytes that are scanned for a record.
//! - `checkpoint`: the position of a reader, so that another one resumes there.
//! - `cutting`: copies some records of a file into a file of their own, to be corrected.

mod batch;
mod checkpoint;
mod cutting;
mod detect;
mod encoding;
mod error;
mod format;
mod gaps;
mod outcome;
mod read;
mod reader;
mod reference;
mod split;
mod stream;
pub mod work;

pub use checkpoint::{Checkpoint, READER_VERSION};
pub use cutting::Cutting;
pub use detect::DETECTION_WINDOW;
pub use encoding::{Certainty, Encoding, OtherEncoding};
pub use error::Error;
pub use format::{Delimiter, Format};
pub use gaps::Skipped;
pub use outcome::{EXCERPT_CHARS, Outcome, Quarantine, REASON_CHARS, Record, Report};
pub use read::{RIS_KINDS, unescape};
pub use reader::{Limits, Reader};
pub use reference::{Reference, Sparse};
