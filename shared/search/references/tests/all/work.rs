//! The work for a file is proportional to its size, whatever it contains.
//!
//! Files are generated: a record of a format with a gap, in which a fragment is repeated. Work is counted, not timed,
//! so the tests have the same result on every machine.

use proptest::prelude::*;
use references::{Limits, Outcome, work};

use crate::read_in_chunks;

/// The text before and behind a gap.
type Gap = (&'static str, &'static str);
/// A piece, the fragment that is repeated behind it, and a piece behind all fragments.
type Fragments = (&'static str, &'static str, &'static str);

/// Gaps for each format and each type of value.
const GAPS: [Gap; 83] = [
    ("TY  - JOUR\nTI  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nAU  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nPY  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nDO  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nUR  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nKW  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nSP  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nAB  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nER  - \n", "\n"),
    ("PMID- 1\nTI  - ", "\n"),
    ("PMID- 1\nTI  - a\nFAU - ", "\n"),
    ("PMID- 1\nTI  - a\nDP  - ", "\n"),
    ("PMID- 1\nTI  - a\nLID - ", "\n"),
    ("PMID- 1\nTI  - a\n\n", "\n"),
    ("FN a\nVR 1.0\nPT J\nTI ", "\nER\nEF"),
    ("FN a\nVR 1.0\nPT J\nTI a\nAF ", "\nER\nEF"),
    ("FN a\nVR 1.0\nPT J\nTI a\nER\n", "\nEF"),
    ("@article{k, title = {", "},\n year = 2020\n}\n"),
    ("@article{k, title = \"", "\",\n year = 2020\n}\n"),
    ("@article{k, title={a}, author = {", "},\n year = 2020\n}\n"),
    ("@article{k, title={a}, doi = {", "},\n year = 2020\n}\n"),
    ("@article{k, title={a}, url = {", "},\n year = 2020\n}\n"),
    ("@article{k, title={a}, keywords = {", "},\n year = 2020\n}\n"),
    ("@article{k, title={a}, crossref = {", "},\n year = 2020\n}\n"),
    ("@article{k, title={a}, ids = {", "},\n year = 2020\n}\n"),
    ("@article{k, title={a}, month = ", ",\n year = 2020\n}\n"),
    ("@article{k, title={a},\n", "}\n"),
    ("@article(k, title={a},\n", ")\n"),
    ("@article{k, title={a},\n", ""),
    ("@article{", "}\n"),
    ("@article{k, title={a}}\n", ""),
    ("@article{k, title={a}}\n@string{", "}\n@a{b,title=c}"),
    ("@article{k, title={a}}\n@comment{", "\n@a{b,title=c}"),
    ("@article{k, title={a}, crossref={z}}\n", "\n@book{z, title={b}}"),
    ("@book{z, title={b}}\n", "\n@article{k, title={a}, crossref={z}}\n"),
    ("Title,X,Authors\na,b,\"", "\"\n"),
    ("Title,X,Year\na,b,\"", "\"\n"),
    ("Title,X,DOI\na,b,\"", "\"\n"),
    ("Title,X,Keywords\na,b,\"", "\"\n"),
    ("Title,X,Source title\na,b,\"", "\"\n"),
    ("Title,X,Pages\na,b,", "\n"),
    ("Title,Authors,DOI\na,b,c\n", "\n"),
    ("Title,Authors,DOI,", "\na,b,c\n"),
    ("PT\tAU\tTI\tSO\tPY\nJ\ta\tb\tc\td\n", "\n"),
    ("\"TITLE\",\"a\"\n\"AUTHOR NAMES\",a,b\n\"DOI\",\"", "\"\n\n"),
    ("\"TITLE\",\"a\"\n\"AUTHOR NAMES\",a,b\n\"DOI\",c\n\n", "\n"),
    ("%0 Book\n%T a\n%A ", "\n\n"),
    ("%0 Book\n%T a\n\n", "\n"),
    ("RT Journal Article\nT1 a\nA1 ", "\n\n"),
    ("RT Journal Article\nT1 a\n\n", "\n"),
    ("<1>\nTitle\n  a\nSource\n  ", "\n<2>\nTitle\n  b\n"),
    ("<1>\nTitle\n  a\nAuthors\n  ", "\n<2>\nTitle\n  b\n"),
    ("<1>\nTitle\n  a\n", "\n"),
    ("Record #1 of 2\nID: 1\nTI: a\nAU: ", "\n\nRecord #2 of 2\nTI: b\n"),
    ("Record #1 of 2\nID: 1\nTI: a\n", "\n"),
    ("____________\nDocument 1 of 2\n\na\n\nPublication info: ", "\n\n____________\nDocument 2 of 2\n\nb\n"),
    ("____________\nDocument 1 of 2\n\na\n\n", "\n"),
    ("1. J. 2020 ", "\n\nT\n\nA B.\n\nabs\n\nPMID: 1\n"),
    ("1. J. 2020;1(2):3.\n\nT\n\n", "\n\nabs\n\nPMID: 1\n"),
    ("1: A B. T. J. 2020;1:2. PMID: 1.\n\n\n2: ", " PMID: 2.\n"),
    ("[{\"type\":\"book\",\"title\":\"a\",\"author\":\"", "\"}]"),
    ("[{\"type\":\"book\",\"title\":\"a\",\"issued\":", "}]"),
    ("[{\"type\":\"book\",\"title\":\"a\"},", "]"),
    ("<xml><records><record><title>", "</title></record></records></xml>"),
    ("<xml><records><record><title>a</title><ref-type ", ">1</ref-type></record></records></xml>"),
    ("<xml><records><record><title>a</title></record>", "</records></xml>"),
    (
        "<PubmedArticleSet><PubmedArticle><ArticleTitle>a<mml:math>",
        "</mml:math></ArticleTitle></PubmedArticle></PubmedArticleSet>",
    ),
    (
        "<PubmedArticleSet><PubmedArticle><ArticleTitle>a</ArticleTitle>",
        "</PubmedArticle></PubmedArticleSet>",
    ),
    (
        "<responseWrapper><resultList><result><title>a</title><abstractText>",
        "</abstractText></result></resultList></responseWrapper>",
    ),
    ("<article><front><article-meta><abstract>", "</abstract></article-meta></front></article>"),
    ("{Reference Type}: Journal Article\n{Title}: a\n{Author}: ", "\n"),
    ("{Reference Type}: Journal Article\n{Title}: a\n", "\n"),
    ("SrcDatabase-来源库: a\nTitle-题名: b\nAuthor-作者: ", "\n"),
    ("SrcDatabase-来源库: a\nTitle-题名: b\n", "\n"),
    (
        "<Trials_downloaded_from_ICTRP><Trial><Public_title>a</Public_title><Condition>",
        "</Condition></Trial></Trials_downloaded_from_ICTRP>",
    ),
    ("<records><rec><header longDbName=\"a\"><tig><atl>a</atl></tig><au>", "</au></header></rec></records>"),
    ("<modsCollection><mods><name><namePart>", "</namePart></name></mods></modsCollection>"),
    ("<modsCollection><mods><titleInfo><title>", "</title></titleInfo></mods></modsCollection>"),
    ("<records><rec><header ", "><tig><atl>a</atl></tig></header></rec></records>"),
    ("{\"message\":{\"items\":[{\"title\":[\"a\"],\"author\":\"", "\"}]}}"),
    ("{\"results\":[{\"display_name\":\"a\",\"ids\":{},\"keywords\":[", "]}]}"),
    ("TY  - JOUR\nTI  - a\nAU  - ", "\nER  - \n"),
    ("TY  - JOUR\nTI  - a\nUR  - https://a.example/?", "\nER  - \n"),
];

/// Pieces of fragments that open, close, separate, refer to or are searched for in some format.
#[rustfmt::skip]
const PIECES: [&str; 98] = [
    "(", ")", "[", "]", "{", "}", "\"", "'", "\\", "$", "<", ">", "&", ";", ",", ".", " ", "\n", "\r", "=", "#", "@", "%",
    "-", "/", ":", "|", "~", "^", "_", "a", "A", "1", "\t", "é", "\u{301}", "\u{a0}", "\\'", "\\\"{", "\\textbf{",
    "\\frac", "\\href{", "\\}", "\\{", "{}", "{\\}", "a={", "a=\"", "\n a = {", "crossref=", "crossref={", "crossref={z}",
    "ids=", "ids={", "\n@b{", "\n@b{z,", "@b{z,", "z,", "@comment{", "@string{a=", "\n\n", ". ", " (", " (x", "2020", "Vol.",
    "10.", "10.5555/", "10.5555.", "doi:", " and ", "and", "family=", "Jr", "J. ", "<a>", "</a>", "<a ", "<record>", "</record>",
    "<record/>", "<mover>", "</mover>", "<!--", "-->", "<![CDATA[", "]]>", "&amp;", "&#38;", "[{", "{\"a\":", "\nTY  - ",
    "\nER  - ", "\nPMID- 1\n", "\n<1>\n", "\nPT J\n", "\n%0 Book\n", "\nTitle,Authors,DOI\n",
];

/// Pieces before and behind the fragments.
const ENDS: [&str; 12] = ["", "", "", ")", "}", "]", "\"", "'", "/", "}}}}", " (", "-->"];

/// Generates a file of about `bytes` bytes. The number of fragments is a multiple of twelve, so that for example the
/// closing of a quotation mark does not depend on the size.
fn file(gap: (&str, &str), fragments: (&str, &str, &str), bytes: usize) -> String {
    let ((front, back), (first, fragment, last)) = (gap, fragments);
    let number = bytes.div_ceil(fragment.len()).next_multiple_of(12);
    [front, first, &fragment.repeat(number), last, back].concat()
}

/// The work for a file. Most of these files have one record, which is read, quarantined or refused together with the
/// file.
fn work_of(file: &str) -> u64 {
    work::counted(|| read_in_chunks(file.as_bytes(), 64 * 1024, Limits::default())).1
}

/// Fails if double the size takes three times the work, or if the work exceeds the budget.
fn assert_proportional(gap: (&str, &str), fragments: (&str, &str, &str), bytes: usize) {
    let of = |bytes: usize| work_of(&file(gap, fragments, bytes));
    let (once, twice) = (of(bytes), of(2 * bytes));
    let longest = file(gap, fragments, 2 * bytes).len();
    // A single jump is possible: a record may be read that was refused early when it was smaller.
    let grows = twice < 3 * once || of(4 * bytes) < 3 * twice;
    assert!(grows, "{once} and {twice} for {gap:?} with {fragments:?}");
    assert!(twice <= work::budget(longest), "{twice} for {longest} bytes of {gap:?} with {fragments:?}");
}

/// Shapes that once needed quadratic work, or a scan of a fixed part of the file for every few bytes.
const FOUND: [(Gap, Fragments); 33] = [
    (("@article{k, title={a}}\n", ""), ("", "@b{z,crossref=z\n", "")),
    (("@article{k, title={a}}\n", ""), ("", "@b{z,crossref=z,}\n", "")),
    (("@article{k, title={a}}\n", ""), ("", "@b{z,crossref={q}}\n", "ids={")),
    (("@article{k, title={a}}\n", ""), ("@b{z,crossref={q}}\n", "ids={a,", "")),
    (("@article{k, title={a}}\n", ""), ("@b{z,crossref={q}}\n", "@c{q,", "")),
    (("@article{k, title={a}}\n", ""), ("", "@b{z,crossref={q},ids={z}}", "")),
    (("@article(k, title={a},\n", ")\n"), ("", "crossref={", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a={\n", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "\n a = {", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "\n a = \"{", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a={\\},", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=\"\\\",", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=1,", "")),
    (("@article{k, title = {", "}}"), ("", "\\emph{", "")),
    (("@article{k, title = {", "}}"), ("", "\\frac", "")),
    (("@article{k, title = {", "}}"), ("", "\\end{", "")),
    (("@article{k, title = {", "}}"), ("", "\\frac{a}{", "")),
    (("@article{k, title = {", "}}"), ("", "\nTY  - $", "")),
    (("@article{k, title = {", "}}"), ("", "\\'{\\'{\\'{\\'{?}}}}", "")),
    (("@article{k, title={a}}\n", ""), ("", "@comment{\n", "")),
    (("@article{k, title={a}}\n", ""), ("", "@comment{\n@b{z,\n", "")),
    (("<1>\nTitle\n  a\nSource\n  ", "\n"), ("", " (x", ")")),
    (("<1>\nTitle\n  a\nSource\n  ", "\n"), ("", " (2020", "")),
    (("Document 1 of 2\n\na\n\nPublication info: ", "\n\nDocument 2 of 2\n\nb\n"), ("", " (", ")")),
    (
        ("TY  - JOUR\nTI  - a\nER  - \n", ""),
        ("", "TY  - JOUR\nDO  - 10.5555/a((((((()))))))))))))))))))))\nER  - \n", ""),
    ),
    (
        ("TY  - JOUR\nTI  - a\nER  - \n", ""),
        ("", "TY  - JOUR\nDO  - 10.5555/( ( ( ( ( ( ( ( ( (\nER  - \n", ""),
    ),
    (("TY  - JOUR\nTI  - a\nDO  - ", "\nER  - \n"), ("", "10.1010.", "/ ")),
    (("Title,Authors,DOI,", "\na,b,c\n"), ("", ",", "")),
    (("[{\"type\":\"book\",\"title\":\"a\"},", "]"), ("]", "][", "")),
    (("[{\"type\":\"book\",\"title\":\"a\"},", "]"), ("", "]]>\n[{", "")),
    (("@article{k, title = {", "}}"), ("", "\\}{\"a\":", "")),
    (("<xml><records><record><title>", "</title></record></records></xml>"), ("", "<a '>", "")),
    (("<xml><records><record><title>", "</title></record></records></xml>"), ("", "<!--", "")),
];

#[test]
fn work_of_known_shapes_is_proportional() {
    for (gap, fragments) in FOUND {
        assert_proportional(gap, fragments, 32 * 1024);
    }
}

#[test]
fn largest_record_takes_proportional_work() {
    let largest = if is_deep() { 8 << 20 } else { 1 << 20 };
    for (gap, fragments) in FOUND.into_iter().filter(|(gap, _)| gap.0.ends_with("title={a},\n")) {
        assert_proportional(gap, fragments, largest);
    }
}

/// A file with a fragment repeated in one of the gaps.
fn any_file() -> impl Strategy<Value = (Gap, &'static str, String, &'static str)> {
    let fragment = prop::collection::vec(prop::sample::select(PIECES.as_slice()), 1..5);
    let end = || prop::sample::select(ENDS.as_slice());
    (prop::sample::select(GAPS.as_slice()), end(), fragment.prop_map(|pieces| pieces.concat()), end())
}

/// Returns `true` if this run has time for more cases.
fn is_deep() -> bool {
    std::env::var("PROOF").is_ok_and(|level| level == "deep")
}

fn cases() -> u32 {
    if is_deep() { 50_000 } else { 400 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_of_any_shape_is_proportional((gap, first, fragment, last) in any_file()) {
        assert_proportional(gap, (first, &fragment, last), 8 * 1024);
    }
}

/// The budget of the whole file is too small here, so the file ends with one of its records.
#[test]
fn record_beyond_budget_is_quarantined_with_reason() {
    let file = "TY  - JOUR\nTI  - a &amp; b\nER  - \n".repeat(40);
    let mut read = None;
    let whole = work::within(2_000, || {
        read = Some(read_in_chunks(file.as_bytes(), usize::MAX, Limits::default()));
    });
    assert_eq!(whole, Err(work::BudgetExceeded));
    let (outcomes, report) = read.unwrap().unwrap();
    assert_eq!((outcomes.len(), report.records), (40, 40));
    assert!(report.quarantined > 0);
    let Some(Outcome::Quarantined(last)) = outcomes.last() else { panic!("{:?}", outcomes.last()) };
    assert_eq!(last.reason, work::BudgetExceeded.to_string());
    assert!(last.excerpt.starts_with("TY  - JOUR"));
}
