//! Reads the reference files that systematic reviewers export from literature databases.
//!
//! # What it promises
//!
//! - **Push parsing.** [`Reader::push`] accepts the next bytes in chunks of any size, and returns the records that they
//!   complete. The same bytes yield the same outcomes in any chunking.
//! - **Detection by content.** Encoding and format are detected from the first [`DETECTION_WINDOW`] bytes, never from a
//!   file name.
//! - **No silent loss.** Every record of the file is either [`Outcome::Read`] or [`Outcome::Quarantined`] with a reason
//!   and an excerpt. It carries its number, its first line and its exact byte range in the original file.
//! - **Bounded memory.** The reader holds the detection window, the current chunk and one record; [`Limits`] are
//!   enforced while streaming.
//! - **Bounded work.** The bytes that are scanned for a record are counted, and limited in proportion to its size
//!   ([`work`]). A record that exceeds its budget is quarantined.
//! - **No panics** for any input, and no unsafe code.
//!
//! # What it deliberately does not do
//!
//! - No input or output, no async runtime: the caller fetches bytes and stores outcomes.
//! - No deduplication and no interpretation: values are only tidied (white space, DOI prefixes). Values without a field
//!   stay in [`Reference::extra`], and so do notes about repairs of damaged records, under `repaired`.
//! - No DTDs: an XML file with a DOCTYPE is refused, so entities are never defined or expanded. Only the external
//!   document types that PubMed and publishers declare are skipped, and never fetched.
//! - No compressed files, spreadsheets or PDFs: they are refused by name, with advice ([`Error::Binary`]). Callers may
//!   unpack them first, for example with `archives`.
//!
//! # Modules, in reading order
//!
//! - `reference`, `outcome`, `format`, `error`, `limits`, `position`: the vocabulary.
//! - `reader`: the public push parser, which detects the format and then delegates to `stream`.
//! - `detect` and `encoding`: the format of a file, and the decoding of its bytes.
//! - `stream`: one buffer, one splitter, and positions in the original file.
//! - `batch`: reads the records of one push on several threads while more records are found.
//! - `split`: finds where records begin and end, per format, on raw bytes.
//! - `table`: the meaning of a table's columns, and the cells of its rows.
//! - `read`: turns the text of a record into a [`Reference`], with a table per format.
//! - `gaps`: the text outside of records, for the report.
//! - `work`: counts and limits the bytes that are scanned for a record.
//! - `checkpoint` and `stored_bytes`: the state with which another reader resumes.
//! - `extract`: extracts records into a new file, where they can be corrected.

#![warn(clippy::missing_errors_doc)]

mod batch;
mod checkpoint;
mod detect;
mod encoding;
mod error;
mod extract;
mod format;
mod gaps;
mod limits;
mod outcome;
mod position;
mod read;
mod reader;
mod reference;
mod split;
mod stored_bytes;
mod stream;
mod table;
pub mod work;

pub use checkpoint::{Checkpoint, READER_VERSION};
pub use detect::DETECTION_WINDOW;
pub use encoding::{Certainty, Encoding, OtherEncoding};
pub use error::Error;
pub use extract::RecordExtractor;
pub use format::{Delimiter, Format};
pub use limits::Limits;
pub use outcome::{EXCERPT_CHARS, Outcome, Quarantine, REASON_CHARS, Record, Report, SkippedText};
pub use read::{RIS_KINDS, unescape};
pub use reader::Reader;
pub use reference::{Reference, SparseReference};
