//! Compares the tables in `docs/fields.md` with those of the readers.

use super::{
    bibtex, csl, databases, ebsco, ebsco_tagged, endnote, endnote_text, engineering_village, eu_ctr,
    europe_pmc,
    field::{Field, Rule},
    ictrp, isrctn, jats, mods, nbib, noteexpress, pubmed_xml, refer, refworks, ris, wos, zotero,
};
use crate::table::header;

const FORMATS: [(&str, &[Rule]); 25] = [
    ("RIS", ris::RULES),
    ("PubMed nbib", nbib::RULES),
    ("EndNote XML", endnote::RULES),
    ("PubMed XML", pubmed_xml::RULES),
    ("Web of Science plain text", wos::RULES),
    ("BibTeX", bibtex::RULES),
    ("CSV and TSV", header::RULES),
    ("EndNote tagged", refer::RULES),
    ("EndNote text", endnote_text::RULES),
    ("RefWorks tagged", refworks::RULES),
    ("Ovid text", databases::OVID),
    ("Cochrane text", databases::COCHRANE),
    ("ProQuest text", databases::PROQUEST),
    ("Engineering Village text", engineering_village::RULES),
    ("CSL-JSON", csl::RULES),
    ("Europe PMC XML", europe_pmc::RULES),
    ("JATS XML", jats::RULES),
    ("NoteExpress", noteexpress::RULES),
    ("WHO ICTRP XML", ictrp::RULES),
    ("ISRCTN XML", isrctn::RULES),
    ("EU Clinical Trials Register text", eu_ctr::RULES),
    ("EBSCO XML", ebsco::RULES),
    ("EBSCO tagged", ebsco_tagged::RULES),
    ("MODS XML", mods::RULES),
    ("Zotero RDF", zotero::RULES),
];

fn becomes(field: Field) -> &'static str {
    match field {
        Field::Title => "`title`",
        Field::Book => "`title` if there is none, else `journal`",
        Field::Series => "`journal` if there is none",
        Field::Author => "`authors`",
        Field::ShortAuthor => "`authors` if there are none of the above",
        Field::Group => "`authors`, as given",
        Field::Editor => "`authors` if there are none",
        Field::Date => "`year` and `date`",
        Field::MonthDay => "month and day of `date`",
        Field::Journal => "`journal`",
        Field::Citation => "`journal`, `year`, `volume`, `issue` and `pages`",
        Field::Volume => "`volume`",
        Field::Issue => "`issue`",
        Field::Pages => "`pages`",
        Field::FirstPage => "first page of `pages`",
        Field::LastPage => "last page of `pages`",
        Field::Doi => "`doi`",
        Field::Pmid => "`pmid`",
        Field::Accession => "`pmid` or `extra`",
        Field::Database => "`extra` (database)",
        Field::Abstract => "`abstract`",
        Field::Keyword => "`keywords`",
        Field::Url => "`url`",
        Field::Type => "`type`",
        Field::FamilyName => "family name in `authors`",
        Field::GivenName => "given name in `authors`",
        Field::Initials => "given name in `authors` if there is none",
        Field::NameSuffix => "suffix in `authors`",
        Field::Extra => "`extra`",
        Field::LeftOut => "left out",
    }
}

fn table(rules: &[Rule]) -> String {
    let rows = rules.iter().map(|rule| {
        let names: Vec<String> = rule.names.iter().map(|name| format!("`{name}`")).collect();
        format!("| {} | {} |\n", names.join(", "), becomes(rule.field))
    });
    format!("| from | becomes |\n| --- | --- |\n{}", rows.collect::<String>())
}

#[test]
fn fields_page_matches_reader_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/fields.md");
    let page = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    for (format, rules) in FORMATS {
        let section = page.split("\n## ").find(|section| section.starts_with(format)).unwrap_or_default();
        assert!(section.contains(&table(rules)), "{path} should have under {format}:\n\n{}", table(rules));
    }
}

#[test]
fn fields_page_lists_every_work_type() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/fields.md")).unwrap();
    // Lines of the page may be wrapped anywhere.
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for (code, kind) in ris::KINDS {
        assert!(page.contains(&format!("`{code}` {kind}")), "{code} is not listed as {kind}");
    }
}

#[test]
fn rule_names_are_unique_per_table() {
    for (format, rules) in FORMATS {
        let names: Vec<&str> = rules.iter().flat_map(|rule| rule.names.iter().copied()).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{format} has {name} twice");
        }
    }
}
