//! The results are independent of the chunking, and no bytes cause a panic.

use proptest::prelude::*;
use references::{Checkpoint, DETECTION_WINDOW, Error, Format, Limits, Outcome, Reader, Report};

use crate::{
    bundled::bundled,
    pieces::{BUNDLED, PIECES, STARTS},
    place, read_in_chunks,
};

pub(crate) fn limits() -> Limits {
    Limits { max_file_bytes: 1 << 20, max_record_bytes: 1 << 20, max_records: 1 << 20 }
}

/// Returns `true` for lines that the format may have outside of records.
fn may_be_passed_over(format: Format, line: &str) -> bool {
    let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let begins = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
    match format {
        // Only lines that begin no record may be passed over. Other tags between two records are remarks of a database.
        Format::Ris => !begins(&["TY  - ", "TI  - ", "AU  - ", "DO  - ", "AB  - "]),
        Format::Nbib => !begins(&["PMID- ", "PMC - ", "FAU - ", "OWN - ", "UI  - "]),
        Format::WebOfScience => line != "PT J" && !begins(&["TI ", "AU "]),
        Format::BibTex => !begins(&["@article{a,", "@string(d"]) || line.starts_with("@string"),
        Format::Refer => !begins(&["%0 ", "%A ", "%T "]),
        Format::LooseRis => !begins(&["TY-JOUR"]),
        Format::EndNoteText => !line.starts_with("Reference Type:"),
        Format::RefWorks => !begins(&["RT Journal Article"]),
        Format::Ovid => line != "<1>",
        Format::Cochrane => !begins(&["Record #1 of 2"]),
        Format::ProQuest => line != "Document 1 of 2",
        Format::EbscoTagged => !line.starts_with("TI- "),
        Format::EngineeringVillage => line != "<RECORD 1>",
        Format::CnkiText => !line.starts_with("SrcDatabase-来源库"),
        Format::NoteExpress => !line.starts_with("{Reference Type}:"),
        Format::EuCtrText => line != "EudraCT Number: 2019-001234-12",
        Format::PubMedText => !begins(&["1. J."]),
        // Single lines are ambiguous in these formats; `accounted` checks exactly what may be between records.
        Format::Csv { .. }
        | Format::FieldRows
        | Format::EndNoteXml
        | Format::PubMedXml
        | Format::EuropePmcXml
        | Format::IctrpXml
        | Format::IsrctnXml
        | Format::EbscoXml
        | Format::ModsXml
        | Format::ZoteroRdf
        | Format::JatsXml
        | Format::CslJson
        | Format::Json => true,
    }
}

/// Reads at most `most` outcomes at a time.
fn read_a_few(file: &[u8], chunk: usize, max: usize) -> Result<(Vec<Outcome>, Report), Error> {
    let mut reader = Reader::new(limits());
    let mut all = Vec::new();
    for bytes in file.chunks(chunk).map(Some).chain([None]) {
        match bytes {
            Some(bytes) => reader.feed(bytes),
            None => reader.end(),
        }
        loop {
            let outcomes = reader.read(max)?;
            assert!(outcomes.len() <= max);
            if outcomes.is_empty() {
                break;
            }
            all.extend(outcomes);
        }
    }
    Ok((all, reader.report()?))
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..60);
    (prop::sample::select(STARTS.as_slice()), pieces)
        .prop_map(|(start, pieces)| start.to_owned() + &pieces.concat())
}

fn encode(text: &str, encoding: u8) -> Vec<u8> {
    match encoding {
        0 => text.as_bytes().to_vec(),
        1 => format!("\u{feff}{text}").into_bytes(),
        2 => format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect(),
        3 => encoding_rs::MACINTOSH.encode(&text.replace('𝛼', "ü")).0.into_owned(),
        _ => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect(),
    }
}

fn encoded() -> impl Strategy<Value = Vec<u8>> {
    (text(), 0..5_u8).prop_map(|(text, encoding)| encode(&text, encoding))
}

/// A file whose first record fills the detection window, so that the rest is split while it is streamed.
fn beyond_window() -> impl Strategy<Value = Vec<u8>> {
    (1..STARTS.len(), text(), 0..5_u8).prop_map(|(start, tail, encoding)| {
        let (start, long) = (STARTS[start], "long ".repeat(14_000));
        let filler = match start {
            start if start.starts_with("<xml>") => format!("<title>{long}</title></record>"),
            start if start.starts_with("<PubmedArticleSet><P") => {
                format!("<ArticleTitle>{long}</ArticleTitle></PubmedArticle>")
            }
            start if start.starts_with("<!") => format!("<PubmedArticle>{long}</PubmedArticle>"),
            start if start.starts_with("PT ") => format!("TI {long}\nER\n"),
            start if start.starts_with('@') => format!("note = {{{long}}}}}\n"),
            start if start.starts_with("<resp") => format!("<title>{long}</title></result>"),
            start if start.starts_with("<pmc") => format!("<front>{long}</front></article>"),
            start if start.starts_with('[') => format!("\"note\": \"{long}\"}},"),
            start if start.starts_with('%') => format!("%T {long}\n\n"),
            start if start.starts_with("RT") => format!("T1 {long}\n"),
            start if start.starts_with("PT\t") => format!("J\ta\t{long}\tb\n"),
            start if start.starts_with('"') => format!("\"TITLE\",\"{long}\"\n\n"),
            start if start.starts_with("TY") => format!("TI  - {long}\nER  -\n"),
            start if start.starts_with("PMID") => format!("TI  - {long}\n\n"),
            _ => format!("{long}\n"),
        };
        encode(&format!("{start}{filler}{tail}"), encoding)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outcomes_are_independent_of_chunking(file in encoded(), chunk in 1_usize..40) {
        let whole = read_in_chunks(&file, usize::MAX, limits());
        prop_assert_eq!(read_in_chunks(&file, chunk, limits()), whole);
    }

    #[test]
    fn outcomes_are_independent_of_portion_size(
        file in encoded(),
        chunk in 1_usize..400,
        max in 1_usize..5,
    ) {
        let whole = read_in_chunks(&file, usize::MAX, limits());
        prop_assert_eq!(read_a_few(&file, chunk, max), whole);
    }

    #[test]
    fn ranges_are_ordered_within_the_file(file in encoded()) {
        if let Ok((outcomes, report)) = read_in_chunks(&file, usize::MAX, limits()) {
            let mut last = 0;
            for (at, outcome) in outcomes.iter().enumerate() {
                prop_assert_eq!(outcome.number(), at as u64 + 1);
                let range = place(outcome);
                prop_assert!(range.start >= last && !range.is_empty() && range.end <= file.len());
                last = range.end;
            }
            prop_assert_eq!(report.records, outcomes.len() as u64);
        }
    }

    #[test]
    fn outcomes_are_independent_of_any_cut(file in encoded(), at in any::<prop::sample::Index>()) {
        let (front, back) = file.split_at(at.index(file.len() + 1));
        let mut reader = Reader::new(limits());
        let pushed = reader.push(front).and_then(|mut outcomes| {
            outcomes.extend(reader.push(back)?);
            let (last, report) = reader.finish()?;
            outcomes.extend(last);
            Ok((outcomes, report))
        });
        prop_assert_eq!(pushed, read_in_chunks(&file, usize::MAX, limits()));
    }

    /// A reader that resumes at a checkpoint returns the remaining records and the same report, or the same error.
    #[test]
    fn resumed_reader_returns_the_rest(file in beyond_window(), at in any::<prop::sample::Index>(), chunk in 1_usize..40) {
        let whole = read_in_chunks(&file, usize::MAX, limits());
        let window = file.len().min(DETECTION_WINDOW);
        let front = &file[..window + at.index(file.len() - window + 1)];
        let mut reader = Reader::new(limits());
        let Ok(mut outcomes) = reader.push(front) else { return Ok(()) };
        let Some(checkpoint) = reader.checkpoint() else { return Ok(()) };
        prop_assert_eq!(checkpoint.records(), outcomes.len() as u64);
        let stored = serde_json::to_string(&checkpoint).unwrap();
        let checkpoint: Checkpoint = serde_json::from_str(&stored).unwrap();
        let mut reader = Reader::resume(limits(), &checkpoint).unwrap();
        let rest = &file[usize::try_from(checkpoint.byte()).unwrap()..];
        let pushed = rest.chunks(chunk).try_for_each(|chunk| reader.push(chunk).map(|new| outcomes.extend(new)));
        let resumed = pushed.and_then(|()| reader.finish()).map(|(last, report)| {
            outcomes.extend(last);
            (outcomes, report)
        });
        prop_assert_eq!(resumed, whole);
    }

    /// Every byte belongs to one outcome, or to a gap that contains only text that is not part of a record in this
    /// format.
    #[test]
    fn gaps_contain_no_part_of_records(file in text(), at in any::<prop::sample::Index>()) {
        let Ok((outcomes, report)) = read_in_chunks(file.as_bytes(), 1 + at.index(50), limits()) else { return Ok(()) };
        // The lines of a merged file belong to several formats.
        prop_assume!(report.parts == 1);
        let mut last = 0;
        for outcome in outcomes.iter().map(Some).chain([None]) {
            let range = outcome.map_or(file.len()..file.len(), place);
            // If the previous record ends in the middle of a line, the rest of this line is not checked.
            let gap = &file[last..range.start];
            let before = file[..last].ends_with(['\n', '\r']) || last == 0;
            let lines = gap.split(['\n', '\r']).skip(usize::from(!before));
            for line in lines {
                prop_assert!(may_be_passed_over(report.format, line), "{:?} in {:?} of {:?}", line, gap, file);
            }
            last = range.end;
        }
    }

    #[test]
    fn mutated_exports_never_panic(
        name in prop::sample::select(BUNDLED.as_slice()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..12),
        chunk in 1_usize..5000,
    ) {
        let mut file = bundled(name);
        for (at, byte, change) in changes {
            let at = at.index(file.len());
            match change {
                0 => file[at] = byte,
                1 => file.insert(at, byte),
                2 => file.truncate(at.max(1)),
                _ => drop(file.drain(at..(at + usize::from(byte)).min(file.len() - 1).max(at))),
            }
        }
        let whole = read_in_chunks(&file, usize::MAX, limits());
        prop_assert_eq!(read_in_chunks(&file, chunk, limits()), whole);
    }

    #[test]
    fn arbitrary_bytes_never_panic(file in prop::collection::vec(any::<u8>(), 0..400), start in prop::sample::select(STARTS.as_slice())) {
        let _ = read_in_chunks(&[start.as_bytes(), &file].concat(), 64, limits());
        let _ = read_in_chunks(&file, 64, limits());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunking_beyond_window_changes_nothing(file in beyond_window(), chunk in 1_usize..40) {
        let (window, rest) = file.split_at(DETECTION_WINDOW + 10);
        let mut reader = Reader::new(limits());
        let chunks = std::iter::once(window).chain(rest.chunks(chunk));
        let streamed = chunks.map(|chunk| reader.push(chunk)).collect::<Result<Vec<_>, _>>();
        let streamed = streamed.and_then(|outcomes| {
            let (last, report) = reader.finish()?;
            Ok((outcomes.into_iter().flatten().chain(last).collect(), report))
        });
        prop_assert_eq!(streamed, read_in_chunks(&file, usize::MAX, limits()));
    }
}
