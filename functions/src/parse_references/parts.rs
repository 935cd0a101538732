//! The parts of a file: itself, or what is inside it.

use futures::stream::{StreamExt, TryStreamExt};
use imports::messages::StartParsing;
use imports::objects::ObjectStream;
use imports::{Contents, Counts, MAX_PARTS, Part, PartBytes};
use messages::Reporter;
use references::{Certainty, Checkpoint, Limits, Reader, Report};
use serde::{Deserialize, Serialize};

use super::ParseReferences;
use super::file::{FileError, Time};
use super::pending::Pending;

/// The most sentences that are kept about a file, and the most characters of each.
const MOST_NOTES: usize = 20;
const NOTE_CHARS: usize = 300;

/// From how many per cent of records without titles on that is said.
const UNTITLED_PERCENT: u64 = 2;

/// How many reasons are given when there is nothing to read inside.
const TOLD: usize = 3;

/// A place in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spot {
    /// Where in the part that is read, or in the file.
    #[serde(flatten)]
    pub(crate) within: Checkpoint,
    /// Which part that is, where the file is packed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) packed: Option<InPart>,
}

/// A part, and what was read before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InPart {
    /// Its place among all that is inside, from 0.
    pub(crate) index: usize,
    /// What was read before it.
    pub(crate) read: Tally,
}

/// What was found in a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) quarantined: u64,
    untitled: u64,
    formats: Vec<String>,
    encodings: Vec<String>,
    format_certainty: Option<Certainty>,
    encoding_certainty: Option<Certainty>,
    parts: Vec<Part>,
    notes: Vec<String>,
    /// How many more sentences there were.
    more_notes: usize,
}

impl Tally {
    /// What was found in a file that is not packed.
    pub(crate) fn of_plain(report: &Report) -> Self {
        let mut tally = Self::default();
        tally.add("", report, &report.format.to_string());
        tally
    }

    /// Adds what was found in a file, or in a part that is called so.
    fn add(&mut self, name: &str, report: &Report, format: &str) {
        self.records += report.records;
        self.quarantined += report.quarantined;
        self.untitled += report.untitled;
        let encoding = report.encoding.to_string();
        for (all, new) in [(&mut self.formats, format.to_owned()), (&mut self.encodings, encoding)] {
            if !all.contains(&new) {
                all.push(new);
            }
        }
        let least = |before: Option<Certainty>, new: Certainty| match before {
            Some(before) if rank(before) > rank(new) => Some(before),
            _ => Some(new),
        };
        self.format_certainty = least(self.format_certainty, report.format_certainty);
        self.encoding_certainty = least(self.encoding_certainty, report.encoding_certainty);
        if let Some(skipped) = &report.skipped {
            let of = if name.is_empty() { String::new() } else { format!(" of {name:?}") };
            let lines =
                if skipped.lines == 1 { "1 line".to_owned() } else { format!("{} lines", skipped.lines) };
            let (line, text) = (skipped.line, &skipped.excerpt);
            self.note(&format!("{lines}{of} in no record, passed over; the first is line {line}: {text:?}"));
        }
    }

    /// Notes a sentence for the reviewer.
    fn note(&mut self, note: &str) {
        if self.notes.len() == MOST_NOTES {
            self.more_notes += 1;
        } else {
            self.notes.push(note.chars().take(NOTE_CHARS).collect());
        }
    }

    /// All of it, for the reviewer.
    pub(crate) fn counts(&self) -> Counts {
        let mut notes = self.notes.clone();
        if self.more_notes > 0 {
            notes.push(format!("{} more of that kind", self.more_notes));
        }
        if self.untitled > 0 && self.untitled * 100 >= self.records * UNTITLED_PERCENT {
            notes.insert(0, format!("{} of {} records have no title", self.untitled, self.records));
        }
        let said = |certainty: Option<Certainty>| certainty.map_or_else(String::new, |it| it.to_string());
        Counts {
            format: self.formats.join(", "),
            format_certainty: said(self.format_certainty),
            encoding: self.encodings.join(", "),
            encoding_certainty: said(self.encoding_certainty),
            records: self.records,
            studies: self.records - self.quarantined,
            quarantined: self.quarantined,
            parts: self.parts.clone(),
            notes,
        }
    }
}

/// The less certain, the higher.
fn rank(certainty: Certainty) -> u8 {
    match certainty {
        Certainty::Certain => 0,
        Certainty::Likely => 1,
        Certainty::Guess => 2,
    }
}

/// What an uploaded file turned out to be.
pub(super) enum Found {
    /// A file that is not packed, from where it is to be read.
    Plain(ObjectStream),
    Packed(Contents),
}

/// How far the uploaded file is read, in bytes.
pub(super) fn place(bytes: &PartBytes, reader: &Reader) -> u64 {
    match bytes {
        PartBytes::Plain(_) => reader.bytes_read(),
        PartBytes::Packed(unpacked) => unpacked.place(),
    }
}

impl ParseReferences {
    /// Opens a file where it is to be read, and looks whether it is packed. One that was read on as it is needs no look.
    pub(super) async fn look_inside(
        &self,
        command: &StartParsing,
        spot: Option<&Spot>,
    ) -> Result<Found, FileError> {
        let (objects, object) = (&*self.objects, &command.object);
        let plain = spot.filter(|spot| spot.packed.is_none()).map(|spot| spot.within.byte());
        let mut stream = objects.open(object, plain.unwrap_or(0)).await?.ok_or(FileError::Gone)?;
        if plain.is_some() {
            return Ok(Found::Plain(stream));
        }
        let mut start = Vec::new();
        while start.len() < archives::MAGIC_BYTES
            && let Some(piece) = stream.try_next().await?
        {
            start.extend(piece);
        }
        match Contents::of(objects, object, &start, self.limits.max_file_bytes).await? {
            Some(contents) => Ok(Found::Packed(contents)),
            None => Ok(Found::Plain(futures::stream::iter([Ok(start)]).chain(stream).boxed())),
        }
    }

    /// Reads all that is inside a packed file; none when the time was over before.
    pub(super) async fn parse_parts(
        &self,
        contents: &Contents,
        spot: Option<Spot>,
        pending: &mut Pending<'_>,
        reporter: &Reporter,
        time: &Time<'_>,
    ) -> Result<Option<Tally>, FileError> {
        let (mut within, packed) = spot.map(|spot| (spot.within, spot.packed)).unzip();
        let (first, mut tally) =
            packed.flatten().map_or_else(Default::default, |part| (part.index, part.read));
        for (index, inside) in contents.inside().into_iter().enumerate().skip(first) {
            let name = inside.name;
            if inside.is_hidden {
                tally.note(&format!("the sheet {name:?} is hidden, and was not read"));
                continue;
            }
            let within = within.take();
            let from = within.as_ref().map_or(0, Checkpoint::byte);
            let Some(stream) = contents.open(&*self.objects, index, from).await? else {
                tally.note(&format!("the sheet {name:?} has no cells"));
                continue;
            };
            pending.begin(InPart { index, read: tally.clone() });
            let limits = Limits { max_records: self.limits.max_records - tally.records, ..self.limits };
            let mut bytes = PartBytes::Packed(Box::new(stream));
            let reader = self.reader_at(within.as_ref(), limits);
            match self.read_part(&mut bytes, reader, pending, reporter, time).await {
                Ok(None) => return Ok(None),
                Ok(Some(_)) if tally.parts.len() == MAX_PARTS => {
                    return Err(FileError::TooManyParts { limit: MAX_PARTS });
                }
                Ok(Some(report)) => {
                    let format = match contents.is_workbook() {
                        true => "Excel workbook".to_owned(),
                        false => report.format.to_string(),
                    };
                    tally.parts.push(Part {
                        name: name.to_owned(),
                        index,
                        first: tally.records + 1,
                        records: report.records,
                        format: format.clone(),
                        encoding: report.encoding.to_string(),
                    });
                    tally.add(name, &report, &format);
                    if let PartBytes::Packed(unpacked) = &bytes
                        && unpacked.unsaved() > 0
                    {
                        let cells = unpacked.unsaved();
                        tally.note(&format!(
                            "{cells} formulas of the sheet {name:?} have no result: save it in Excel"
                        ));
                    }
                }
                Err(FileError::Refused(error)) => {
                    let error = self.in_part(name, error);
                    match error {
                        FileError::Inside { name, error } if error.is_of_another_kind() => {
                            tally.note(&format!("{name:?} was passed over: {error}"));
                        }
                        error => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if tally.parts.is_empty() {
            let reasons = tally.notes.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; ");
            let reasons = if reasons.is_empty() { reasons } else { format!(": {reasons}") };
            return Err(FileError::NothingInside { kind: contents.kind(), reasons });
        }
        Ok(Some(tally))
    }

    /// Why a file is refused because of a part of it.
    fn in_part(&self, name: &str, error: references::Error) -> FileError {
        let name = name.to_owned();
        match error {
            references::Error::TooManyRecords { .. } => {
                FileError::Refused(references::Error::TooManyRecords { limit: self.limits.max_records })
            }
            error if error.is_packed() && name.is_empty() => {
                FileError::Nested { what: "what is inside".to_owned() }
            }
            error if error.is_packed() => FileError::Nested { what: format!("{name:?}, which is inside,") },
            // There is nothing else in a gzip file.
            error if name.is_empty() => FileError::Refused(error),
            error => FileError::Inside { name, error },
        }
    }
}
