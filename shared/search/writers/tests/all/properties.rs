//! Any study survives writing and reading, apart from the losses of the format.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use references::Reference;

use crate::fields::{READ, expected};
use crate::{read, written};
use writers::Format;

/// Words that contain every character with a meaning in some format.
const WORDS: [&str; 36] = [
    "word",
    "Ärzte",
    "and",
    "ER",
    "-",
    "TY",
    "PMID-",
    "{x}",
    "}",
    "{",
    "\\alpha",
    "\\",
    "$5",
    "$x^2$",
    "100%",
    "#1",
    "a_b",
    "~",
    "^",
    "\"q\"",
    "it's",
    "--",
    "``x''",
    "<b>",
    "&",
    "שלום",
    "😀",
    "@x",
    "|x",
    "x|y",
    "_x000D_",
    "//",
    "=1+1",
    "a,",
    "b;c",
    "日本語",
];

fn line(words: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    // The line begins with a letter, and no word follows a separator: cells that begin like a formula are tested
    // separately.
    vec(prop::sample::select(&WORDS[..]), words)
        .prop_map(|words| format!("A {}", words.join(" ")).trim().to_owned())
}

fn author() -> impl Strategy<Value = String> {
    let family =
        || prop::sample::select(&["Smith", "van der Berg", "O'Neil", "Ben{s}on", "\\Roe", "#Q_1", "Доу"][..]);
    let given = || prop::sample::select(&["John", "J. B.", "Anna", "J.-M.", "Й", "~x^2"][..]);
    prop_oneof![
        (family(), given()).prop_map(|(family, given)| format!("{family}, {given}")),
        (family(), given()).prop_map(|(family, given)| format!("{family}, {given}, Jr.")),
        Just("Health and Safety Executive".to_owned()),
        Just("The {WHO} & partners, Geneva office".to_owned()),
    ]
}

fn study() -> impl Strategy<Value = Reference> {
    let texts = (of(line(0..4)), of(line(0..4)), of(line(0..2)), of("[1-9][0-9]{0,3}(-[1-9][0-9]{0,3})?"));
    let ids = (
        of("10\\.[1-9][0-9]{3}/[a-z0-9_()/.-]{0,12}[a-z0-9]"),
        of("[1-9][0-9]{0,7}"),
        of("https://example\\.org/[a-z0-9_~%#?=&.-]{0,20}[a-z0-9]"),
    );
    let dates = of((1900..2100_i32, of((1..=12_u8, of(1..=28_u8)))));
    let lists = (vec(author(), 0..4), vec(line(0..3), 0..4));
    let kind = of(prop::sample::select(
        &[
            "Journal Article",
            "Book",
            "Thesis/Dissertation",
            "Conference Abstract",
            "Case Reports; Letter",
            "Ephemera",
        ][..],
    ));
    (line(0..8), texts, ids, dates, lists, vec(line(1..12), 0..3), kind).prop_map(
        |(
            title,
            (journal, volume, issue, pages),
            (doi, pmid, url),
            date,
            (authors, mut keywords),
            paragraphs,
            kind,
        )| {
            keywords.dedup();
            let (year, more) = date.map_or((None, None), |(year, more)| (Some(year), more));
            let date = year.zip(more).map(|(year, (month, day))| {
                let day = day.map(|day| format!("-{day:02}")).unwrap_or_default();
                format!("{year}-{month:02}{day}")
            });
            let text = Some(paragraphs.join("\n")).filter(|text| !text.is_empty());
            let r#type = kind.map(str::to_owned);
            Reference {
                title,
                authors,
                year,
                date,
                journal,
                volume,
                issue,
                pages,
                doi,
                pmid,
                r#abstract: text,
                keywords,
                url,
                r#type,
                ..Reference::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_study_survives_writing_and_reading(studies in vec(study(), 1..4)) {
        for (format, _) in READ {
            let (found, _) = read(&written(format, &studies));
            prop_assert_eq!(found.len(), studies.len(), "{}", format);
            for (mut found, study) in found.into_iter().zip(&studies) {
                let mut wanted = expected(format, study.clone());
                // Each format has its own work types, which are tested separately.
                if matches!(format, Format::Ris | Format::EndnoteXml | Format::Bibtex | Format::CslJson) {
                    (found.r#type, wanted.r#type) = (None, None);
                }
                if format == Format::Rayyan {
                    found.authors.clone_from(&wanted.authors);
                }
                // Derived from the pages.
                wanted.pages_normalized.clone_from(&found.pages_normalized);
                wanted.keywords.retain({
                    let mut seen = std::collections::BTreeSet::new();
                    move |keyword| seen.insert(keyword.clone())
                });
                found.extra.clear();
                prop_assert_eq!(&found, &wanted, "{}", format);
            }
        }
    }
}
