//! The way in: studies go in one by one, and bytes come out.

use std::io;

use crate::{Format, Study, bibtex, csl, csv, json_lines, nbib, ris, xlsx::Workbook};

/// A study could not be written: a fault of this crate or of one it uses, since memory is all that is written to. Trying
/// again does not help.
#[derive(Debug, thiserror::Error)]
#[error("writing a study as {format}")]
pub struct Error {
    /// The format.
    pub format: Format,
    /// What failed.
    pub source: io::Error,
}

/// Writes studies in a format.
///
/// The bytes of all calls, in their order, are the file.
#[derive(Debug)]
pub struct Writer {
    format: Format,
    state: State,
    /// How many studies were written.
    studies: u64,
}

/// What has to be known between two studies.
#[derive(Debug)]
enum State {
    Plain,
    Workbook(Box<Workbook>),
}

impl Writer {
    /// Begins a file.
    pub fn new(format: Format) -> Self {
        let state = match format {
            Format::Xlsx => State::Workbook(Box::default()),
            _ => State::Plain,
        };
        Self { format, state, studies: 0 }
    }

    /// Appends the next study to `out`, with what stands before the first one.
    ///
    /// # Errors
    /// See [`Error`]; then the file cannot be finished.
    pub fn push(&mut self, study: &Study<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let is_first = self.studies == 0;
        if is_first {
            self.begin(out)?;
        }
        self.studies += 1;
        let done = match (&mut self.state, self.format) {
            (State::Workbook(workbook), _) => workbook.push(study, out),
            (State::Plain, Format::Ris) => {
                ris::push(study, out);
                Ok(())
            }
            (State::Plain, Format::Nbib) => {
                nbib::push(study, out);
                Ok(())
            }
            (State::Plain, Format::Bibtex) => {
                bibtex::push(study, out);
                Ok(())
            }
            (State::Plain, Format::CslJson) => csl::push(study, is_first, out),
            (State::Plain, format) => match csv::Columns::of(format) {
                Some(columns) => columns.push(study, out),
                None => json_lines::push(study, out),
            },
        };
        done.map_err(|source| Error { format: self.format, source })
    }

    /// Appends what stands behind the last study to `out`. A file without studies is one all the same, with whatever a
    /// header it has.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.studies == 0 {
            self.begin(out)?;
        }
        let done = match self.state {
            State::Workbook(workbook) => workbook.finish(out),
            State::Plain => {
                if self.format == Format::CslJson {
                    csl::finish(self.studies == 0, out);
                }
                Ok(())
            }
        };
        done.map_err(|source| Error { format: self.format, source })
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let done = csv::Columns::of(self.format).map_or(Ok(()), |columns| columns.header(out));
        done.map_err(|source| Error { format: self.format, source })
    }
}
