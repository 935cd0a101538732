//! The work of comparing records is proportional to their size, and bounded for any pair.

use duplicates::{Fields, compare};
use proptest::prelude::*;
use references::{Reference, work};

/// Pieces that open, close or separate part of a title, name, page or identifier.
const PIECES: [&str; 34] = [
    "(",
    ")",
    "[",
    "]",
    "[Erratum ",
    "(see comment",
    "<",
    ">",
    "<a",
    "&",
    "&amp;",
    ";",
    ",",
    ".",
    " ",
    "  ",
    "-",
    "/",
    "10.",
    "10.1234/",
    "a",
    "A",
    "1",
    "é",
    "\u{301}",
    "ﷺ",
    "the ",
    "conference",
    "conference:",
    "Jr ",
    "1234-567",
    "retracted: ",
    " - ",
    "锌",
];

/// A record with the same text in every field.
fn reference(text: &str) -> Reference {
    let value = || Some(text.to_owned());
    Reference {
        title: text.to_owned(),
        authors: vec![text.to_owned()],
        journal: value(),
        volume: value(),
        pages: value(),
        doi: value(),
        pmid: value(),
        r#abstract: value(),
        extra: [("SN".to_owned(), vec![text.to_owned()])].into(),
        ..Reference::default()
    }
}

fn work_of(text: &str) -> u64 {
    let reference = reference(text);
    work::counted(|| Fields::new(&reference).keys()).1
}

fn assert_proportional(fragment: &str, last: &str, bytes: usize) {
    let text = |bytes: usize| fragment.repeat(bytes.div_ceil(fragment.len())) + last;
    let [once, twice] = [bytes, 2 * bytes].map(|bytes| work_of(&text(bytes)));
    assert!(twice < 3 * once, "{once} and {twice} for {fragment:?} and {last:?}");
    assert!(twice <= work::budget(2 * bytes), "{twice} for {fragment:?} and {last:?}");
}

#[test]
fn title_brackets_are_scanned_once() {
    for (fragment, last) in
        [("(", ""), ("(", ")"), ("[", "}"), ("[(", ""), ("(a ", ")"), ("[Erratum ", "]"), ("(a) ", "")]
    {
        assert_proportional(fragment, last, 64 * 1024);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn comparison_work_is_proportional_to_record_size(
        pieces in prop::collection::vec(prop::sample::select(PIECES.as_slice()), 1..4),
        last in prop::sample::select(PIECES.as_slice()),
    ) {
        assert_proportional(&pieces.concat(), last, 8 * 1024);
    }
}

/// Two titles with the given number of words. Each word differs from its counterpart in one letter.
fn alike(words: usize) -> [Fields; 2] {
    let title = |last: char| {
        let word = |at: usize| {
            format!(
                "w{}{}{last}",
                char::from(b'a' + (at % 26) as u8),
                char::from(b'a' + (at / 26 % 26) as u8)
            )
        };
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    };
    let authors = |first: char| (0..150).map(|at| format!("{first}{at}, A")).collect();
    [('x', 'a'), ('y', 'b')].map(|(last, first)| {
        Fields::new(&Reference { title: title(last), authors: authors(first), ..Reference::default() })
    })
}

#[test]
fn comparison_work_is_bounded() {
    for words in [10, 100, 1_000, 10_000] {
        let [one, other] = alike(words);
        let (_, spent) = work::counted(|| compare(&one, &other));
        assert!(spent < 20_000, "{spent} for {words} words");
    }
}
