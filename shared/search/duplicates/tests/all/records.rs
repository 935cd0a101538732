//! Records for tests, in a few words.

use duplicates::Fields;
use references::Reference;

/// A record of `name=value` pairs: `t` the title, `a` the authors, `y` the year, `j` the journal, `v` volume, `i` issue, `p`
/// pages, `d` the DOI, `m` the PubMed identifier, `s` the abstract, `n` the ISSN. A later value replaces an earlier one, and
/// an empty one takes it away.
pub(crate) fn record(said: &str) -> Fields {
    let mut reference = Reference::default();
    for (name, value) in said.split(';').filter_map(|pair| pair.trim().split_once('=')) {
        let value = value.trim();
        let text = (!value.is_empty()).then(|| value.to_owned());
        match name {
            "t" => reference.title = value.to_owned(),
            "a" => {
                let names = value.split('+').filter(|name| !name.is_empty());
                reference.authors = names.map(str::to_owned).collect();
            }
            "y" => reference.year = value.parse().ok(),
            "j" => reference.journal = text,
            "v" => reference.volume = text,
            "i" => reference.issue = text,
            "p" => reference.pages = text,
            "d" => reference.doi = text,
            "m" => reference.pmid = text,
            // Long enough to be compared, each value another one.
            "s" => reference.r#abstract = text.map(|text| format!("{text} ").repeat(80)),
            "n" => reference.extra = [("SN".to_owned(), text.into_iter().collect())].into(),
            other => panic!("no field is called {other}"),
        }
    }
    Fields::of(&reference)
}
