//! Test records in a compact notation.

use duplicates::Fields;
use references::Reference;

/// Creates a record from `name=value` pairs: `t` title, `a` authors, `y` year, `j` journal, `v` volume, `i` issue, `p`
/// pages, `d` DOI, `m` PubMed identifier, `c` number in PubMed Central, `w` number in Web of Science, `e` number in
/// Embase, `s` abstract, `n` ISSN, `x` number of a registered trial, `k` kind of work, `u` link. A later value replaces
/// an earlier one, and an empty value removes it.
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
            "w" => reference.wos_id = text,
            "c" => reference.pmcid = text,
            "e" => reference.embase_id = text,
            "k" => reference.r#type = text,
            "u" => reference.url = text,
            // Long enough to be compared, and different for each value.
            "s" => reference.r#abstract = text.map(|text| format!("{text} ").repeat(80)),
            "x" => reference.extra = [("TrialID".to_owned(), text.into_iter().collect())].into(),
            "n" => reference.extra = [("SN".to_owned(), text.into_iter().collect())].into(),
            other => panic!("no field is called {other}"),
        }
    }
    Fields::new(&reference)
}
