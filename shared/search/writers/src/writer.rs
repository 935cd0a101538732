//! The public interface: accepts studies one by one and returns bytes.

use std::io;

use crate::{Format, Study, bibtex, csl, csv, endnote_xml, json_lines, nbib, ris, xlsx::Workbook};

/// A study could not be written. The cause is a defect in this crate or in a dependency, because writing goes to memory
/// only; retrying does not help.
#[derive(Debug, thiserror::Error)]
#[error("writing a study as {format}")]
pub struct Error {
    /// The format of the file.
    pub format: Format,
    /// The cause.
    pub source: io::Error,
}

/// Writes studies in one format.
///
/// The file is the concatenation of the bytes of all calls.
#[derive(Debug)]
pub struct Writer {
    format: Format,
    state: State,
    /// The number of studies written.
    studies: u64,
}

/// State that is kept between two studies.
#[derive(Debug)]
enum State {
    Plain,
    Workbook(Box<Workbook>),
}

impl Writer {
    /// Starts a file.
    pub fn new(format: Format) -> Self {
        let state = match format {
            Format::Xlsx => State::Workbook(Box::default()),
            _ => State::Plain,
        };
        Self { format, state, studies: 0 }
    }

    /// Appends the next study to `out`, preceded by the file's header if it is the first one.
    ///
    /// # Errors
    /// See [`Error`]. After an error the file cannot be completed.
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
            (State::Plain, Format::EndnoteXml) => {
                endnote_xml::push(study, out);
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
            (State::Plain, format) => match csv::Columns::for_format(format) {
                Some(columns) => columns.push(study, out),
                None => json_lines::push(study, out),
            },
        };
        done.map_err(|source| Error { format: self.format, source })
    }

    /// Appends everything that follows the last study to `out`. A file without studies is complete as well, including
    /// its header.
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
                match self.format {
                    Format::CslJson => csl::finish(self.studies == 0, out),
                    Format::EndnoteXml => out.extend_from_slice(endnote_xml::END),
                    _ => {}
                }
                Ok(())
            }
        };
        done.map_err(|source| Error { format: self.format, source })
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.format == Format::EndnoteXml {
            out.extend_from_slice(endnote_xml::BEGIN);
        }
        let done = csv::Columns::for_format(self.format).map_or(Ok(()), |columns| columns.header(out));
        done.map_err(|source| Error { format: self.format, source })
    }
}
