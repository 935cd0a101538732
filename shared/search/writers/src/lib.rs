//! Writes studies in the formats that other programs read.
//!
//! # What it promises
//!
//! - **The same bytes each time.** What is written follows from the studies and their order alone: no clock, no random
//!   number, no name of a machine is in it.
//! - **Bounded memory.** [`Writer::push`] returns the bytes of each study as soon as they are known; of a workbook, what
//!   its compression holds back.
//! - **A study is one entry.** Whatever its texts contain, they end neither their field nor their entry, and no
//!   spreadsheet computes them: see each format's module for how.
//! - What a format cannot say is listed in `docs/formats.md`, and the tests read every format again with [`references`].
//!
//! # What it deliberately does not do
//!
//! - No input or output, no async runtime: the caller brings studies and stores bytes.
//! - No styles of citation, and no fields beyond those of a [`Study`].
//!
//! # Modules, in reading order
//!
//! - `study`: what is written. `format`: as what. `tool`: what each program wants. `writer`: the way in.
//! - `clean`, `known`, `date`, `kind`, `person`: what formats have in common.
//! - `ris`, `nbib`, `bibtex`, `csl`, `json_lines`: a module for each format; `table`: the columns of tables, with `csv`
//!   and `xlsx`.

mod bibtex;
mod clean;
mod csl;
mod csv;
mod date;
mod format;
mod json_lines;
mod kind;
mod known;
mod nbib;
mod person;
mod ris;
mod study;
mod table;
mod tool;
mod writer;
mod xlsx;

pub use format::{Format, UnknownFormat};
pub use study::{Source, Study};
pub use tool::{Split, Tool, UnknownTool};
pub use writer::{Error, Writer};
pub use xlsx::MOST_CELL;
