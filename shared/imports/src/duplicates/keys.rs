//! What studies have in common, as numbers.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use uuid::Uuid;

use super::{Identity, Reason};

/// How keys are made: by [`key`], from text [`folded`] by these versions of Unicode. The number grows when one of the two
/// gives other keys.
pub(super) static KEYS: LazyLock<String> = LazyLock::new(|| {
    let version = |(major, minor, update): (u8, u8, u8)| format!("{major}.{minor}.{update}");
    let (letters, forms) = (char::UNICODE_VERSION, unicode_normalization::UNICODE_VERSION);
    format!("1, Unicode {} and {}", version(letters), version(forms))
});

/// Title, year and first author; none when one of them is missing, since the other two do not make a work.
pub(super) fn work(study: &Identity) -> Option<u64> {
    let title = folded(&study.title);
    let author = study.first_author.as_deref()?;
    // Databases abbreviate given names, each in its own way.
    let family = folded(author.split(',').next().unwrap_or(author));
    if title.is_empty() || family.is_empty() {
        return None;
    }
    Some(key(Reason::TitleYearAuthor, &[&title, &study.year?.to_string(), &family]))
}

/// Letters and digits alone, without accents, in lower case.
fn folded(text: &str) -> String {
    let base = text.nfkd().filter(|c| !is_combining_mark(*c));
    base.filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A hash that is the same wherever and whenever it is made, since shares of keys are stored: SHA-1, as a name-based UUID
/// has it (RFC 9562, section 5.5). None of the parts holds the character that is between them.
pub(super) fn key(reason: Reason, parts: &[&str]) -> u64 {
    const NAMES: Uuid = Uuid::from_u128(0xb4c4_8f0e_6d6a_4a55_9a3e_1f6f_2c8e_7d10);
    let reason = match reason {
        Reason::Doi => "doi",
        Reason::Pmid => "pmid",
        Reason::TitleYearAuthor => "work",
    };
    let (first, second) =
        Uuid::new_v5(&NAMES, format!("{reason}\0{}", parts.join("\0")).as_bytes()).as_u64_pair();
    // Six bits say that it is a UUID, and are at other places in the two halves.
    first ^ second
}

#[cfg(test)]
mod tests {
    use super::*;

    /// And as any other implementation of name-based UUIDs makes them. Shares of these are stored: another way of making
    /// keys needs another number in [`KEYS`].
    #[test]
    fn keys_are_the_same_wherever_they_are_made() {
        assert_eq!(key(Reason::Doi, &["10.1/a"]), 6_612_021_386_452_660_671);
        assert_eq!(key(Reason::Pmid, &["10.1/a"]), 17_228_132_114_935_524_794);
        let study = Identity {
            title: "Überleben: eine Studie".to_owned(),
            year: Some(2020),
            first_author: Some("Müller, Jürgen".to_owned()),
            ..Identity::default()
        };
        assert_eq!(work(&study), Some(9_312_281_902_319_988_313));
    }

    #[test]
    fn every_bit_of_a_key_takes_part() {
        let keys: Vec<u64> = (0..1_000).map(|n| key(Reason::Pmid, &[&n.to_string()])).collect();
        for bit in 0..64 {
            let ones = keys.iter().filter(|key| *key >> bit & 1 == 1).count();
            assert!((400..600).contains(&ones), "bit {bit} is set in {ones} of 1000");
        }
    }
}
