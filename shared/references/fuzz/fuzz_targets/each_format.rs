//! Arbitrary bytes after the beginning of each format, so that no format has to be found by chance: the splitter and the
//! reader of each. The first byte chooses the format.

#![no_main]

use libfuzzer_sys::fuzz_target;
use references_fuzz::check;

const STARTS: [&str; 19] = [
    "TY  - JOUR\n",
    "PMID- 1\n",
    "<xml><records><record>",
    "<PubmedArticleSet><PubmedArticle>",
    "@article{a, title = {A}, ",
    "PT J\n",
    "Title,Authors,DOI\n",
    "Title\tYear\r\n",
    "%0 Book\n",
    "RT Journal Article\n",
    "<1>\nTitle\n",
    "Record #1 of 2\nTI: a\n",
    "Document 1 of 2\n",
    "1. J. 2020. PMID: 7\n",
    "\"TITLE\",a\n\"DOI\",b\n\"YEAR\",c\n\n",
    "PT\tAU\tTI\tSO\n",
    "[{\"type\": \"book\", \"title\": \"a\", ",
    "<responseWrapper><resultList><result>",
    "<pmc-articleset><article>",
];

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let start = STARTS[usize::from(*choice) % STARTS.len()];
    check(&[start.as_bytes(), bytes].concat());
});
