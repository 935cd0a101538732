//! The work of writing a study is proportional to its size.

use proptest::prelude::*;
use references::{Reference, work};
use writers::Format;

use crate::written;

const PIECES: [&str; 24] = [
    "(", "{", "}", "{}", "\\", "\"", "'", "$", "&", "<", ";", ",", ", ", " and ", " ", "  ", "\n", "-",
    "_x000D_", "a", "=", "é", "\u{7}", "https://",
];

fn work_of(format: Format, text: &str) -> u64 {
    let value = || Some(text.to_owned());
    let reference = Reference {
        title: text.to_owned(),
        authors: vec![text.to_owned()],
        journal: value(),
        pages: value(),
        doi: value(),
        r#abstract: value(),
        keywords: vec![text.to_owned()],
        url: value(),
        r#type: value(),
        extra: [("SN".to_owned(), vec![text.to_owned()])].into(),
        ..Reference::default()
    };
    work::counted(|| written(format, &[reference])).1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn writing_work_is_proportional_to_study_size(
        pieces in prop::collection::vec(prop::sample::select(PIECES.as_slice()), 1..4),
    ) {
        for format in Format::ALL {
            let fragment = pieces.concat();
            let [once, twice] = [4_096, 8_192].map(|bytes| work_of(format, &fragment.repeat(bytes / fragment.len())));
            prop_assert!(twice <= 3 * once && twice <= work::budget(8_192 * 9), "{once} and {twice} as {format}");
        }
    }
}
