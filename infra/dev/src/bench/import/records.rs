//! A file of the size that large reviews have, with an individual abstract for each study.
//!
//! Repeated text would be compressed to almost nothing. Here words consist of random syllables, mixed with common
//! words, so that zstd compresses a single record like a real one (by a factor of 1.9), and many records less than real
//! ones (2.7 instead of 4). Every tenth record repeats the previous one in the form of another database.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::Range;

use references::Reference;

use crate::bench::duplicates::{BEGINNINGS, Draws, ENDS, MIDDLES, REPEATED, reference};

/// The minimum number of letters of an abstract, which results in 1,370 bytes per record.
const ABSTRACT: usize = 1_010;

/// The percentages of words that are numbers, and that are in the list below.
const NUMBERS: u64 = 4;
const COMMON: u64 = 47;

/// Common words, the most frequent first.
const WORDS: [&str; 40] = [
    "the",
    "of",
    "and",
    "in",
    "to",
    "with",
    "was",
    "were",
    "for",
    "a",
    "by",
    "that",
    "this",
    "from",
    "patients",
    "study",
    "between",
    "after",
    "group",
    "had",
    "is",
    "at",
    "or",
    "on",
    "as",
    "which",
    "be",
    "not",
    "more",
    "than",
    "treatment",
    "significantly",
    "compared",
    "results",
    "risk",
    "effect",
    "data",
    "we",
    "trial",
    "months",
];

/// Writes records of a RIS file. Returns the number of bytes.
pub fn write(to: &mut impl Write, records: Range<u64>) -> std::io::Result<u64> {
    let (mut text, mut bytes) = (String::new(), 0);
    for n in records {
        text.clear();
        record(n, &mut text);
        to.write_all(text.as_bytes())?;
        bytes += text.len() as u64;
    }
    Ok(bytes)
}

fn record(n: u64, out: &mut String) {
    let Reference { title, authors, year, journal, volume, pages, doi, .. } = reference(n);
    let pages = pages.unwrap_or_default();
    let (first, last) = pages.split_once('-').unwrap_or((&pages, &pages));
    let (author, journal) = (authors.concat(), journal.unwrap_or_default());
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "TY  - JOUR\nAU  - {author}\nAU  - van der Berg, Anna\nAU  - Müller, Jürgen\nTI  - {title}\nT2  - {journal}\n\
         PY  - {}/04/12/\nVL  - {}\nIS  - 3\nSP  - {first}\nEP  - {last}\nSN  - 0000-0019\n",
        year.unwrap_or_default(),
        volume.unwrap_or_default()
    );
    if let Some(doi) = doi {
        let _ = writeln!(out, "DO  - {doi}");
    }
    let _ = write!(out, "UR  - https://example.org/record/{n}\nKW  - adults\nKW  - hospitals\nAB  - ");
    let work = if n % REPEATED == REPEATED - 1 { n - 1 } else { n };
    // Random numbers independent of those for the title.
    words(&mut Draws::of(!work), out);
    out.push_str("\nER  - \n\n");
}

fn words(draws: &mut Draws, out: &mut String) {
    let (begun, mut left) = (out.len(), 0);
    while out.len() < begun + ABSTRACT {
        let word = match draws.below(100) {
            kind if kind < NUMBERS => format!("{}.{}", draws.below(100), draws.below(10)),
            kind if kind < NUMBERS + COMMON => {
                let max = draws.below(WORDS.len() as u64) + 1;
                WORDS[draws.below(max) as usize].to_owned()
            }
            _ => {
                let mut one_of = |all: &[&'static str]| all[draws.below(all.len() as u64) as usize];
                [one_of(&BEGINNINGS), one_of(&MIDDLES), one_of(&ENDS)].concat().to_lowercase()
            }
        };
        match left {
            0 => {
                left = 8 + draws.below(14);
                let mut letters = word.chars();
                out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
                out.push_str(letters.as_str());
            }
            _ => out.push_str(&word),
        }
        left -= 1;
        out.push_str(if left == 0 { ". " } else { " " });
    }
}
