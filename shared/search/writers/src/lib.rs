//! Writes studies in the formats that other programs read.
//!
//! # What it promises
//!
//! - **Reproducible output.** The bytes depend on the studies and their order alone, not on a clock, random numbers or
//!   the machine.
//! - **Bounded memory.** [`Writer::push`] returns the bytes of each study immediately; for workbooks, all but what the
//!   compressor buffers.
//! - **One entry per study.** Field values cannot terminate their field or record, and spreadsheets never evaluate them
//!   as formulas. Each format's module describes how.
//! - **Documented losses.** `docs/formats.md` lists what a format cannot express, and the tests read every format again
//!   with [`references`].
//!
//! # What it deliberately does not do
//!
//! - No input or output, no async runtime: the caller provides studies and stores bytes.
//! - No citation styles, and no fields beyond those of a [`Study`].
//!
//! # Modules, in reading order
//!
//! - `study`, `format` and `tool`: the input, the output formats, and the programs that files are written for.
//! - `writer`: the public interface.
//! - `clean`, `extra`, `identifiers`, `date`, `work_type`, `person`: shared by several formats.
//! - `ris`, `endnote_xml`, `nbib`, `bibtex`, `csl`, `json_lines`: one module per format; `table`: the columns of
//!   tables, with `csv` and `xlsx`.

#![warn(clippy::missing_errors_doc)]

mod bibtex;
mod clean;
mod csl;
mod csv;
mod date;
mod endnote_xml;
mod extra;
mod format;
mod identifiers;
mod json_lines;
mod nbib;
mod person;
mod ris;
mod study;
mod table;
mod tool;
mod work_type;
mod writer;
mod xlsx;

pub use format::{Format, UnknownFormat};
pub use study::{Source, Study};
pub use tool::{FileLimits, Tool, UnknownTool};
pub use writer::{Error, Writer};
pub use xlsx::MAX_CELL_UNITS;
