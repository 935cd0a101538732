//! The work for a file is proportional to its size, whatever it contains.
//!
//! Files are generated: a record of a format with a gap, in which a fragment is repeated. Work is counted, not timed,
//! so the tests have the same result on every machine.

mod fragments;

use fragments::{GAPS, PIECES};
use proptest::prelude::*;
use references::{Limits, Outcome, work};

use crate::read_in_chunks;

/// The text before and after a gap.
type Gap = (&'static str, &'static str);
/// A piece, the fragment that is repeated after it, and a piece after all fragments.
type Fragments = (&'static str, &'static str, &'static str);
/// Two fragments. The first fragment is repeated, followed by the same number of repetitions of the second fragment, so
/// that one may close the other.
type Pair<'a> = (&'a str, &'a str);

/// Pieces before and after the fragments.
const ENDS: [&str; 12] = ["", "", "", ")", "}", "]", "\"", "'", "/", "}}}}", " (", "-->"];

/// Generates a file of about `bytes` bytes. The number of fragments is a multiple of twelve, so that for example the
/// closing of a quotation mark does not depend on the size.
fn file(gap: (&str, &str), fragments: (&str, &str, &str), bytes: usize) -> String {
    let (first, fragment, last) = fragments;
    nested_file(gap, first, (fragment, ""), last, bytes)
}

/// Works like [`file`], with a second fragment that is repeated as often after the first one.
fn nested_file(gap: (&str, &str), first: &str, fragments: Pair<'_>, last: &str, bytes: usize) -> String {
    let ((front, back), (one, other)) = (gap, fragments);
    let number = bytes.div_ceil(one.len() + other.len()).next_multiple_of(12);
    [front, first, &one.repeat(number), &other.repeat(number), last, back].concat()
}

/// The work for a file. Most of these files have one record, which is read, quarantined or refused together with the
/// file.
fn work_of(file: &str) -> u64 {
    work::counted(|| read_in_chunks(file.as_bytes(), 64 * 1024, Limits::default())).1
}

/// Fails if double the size takes three times the work, or if the work also exceeds the budget for a larger file.
fn assert_proportional(gap: (&str, &str), fragments: (&str, &str, &str), bytes: usize) {
    assert_file_proportional(|bytes| file(gap, fragments, bytes), bytes, &(gap, fragments));
}

fn assert_file_proportional(file: impl Fn(usize) -> String, bytes: usize, shape: &impl std::fmt::Debug) {
    let of = |bytes: usize| work_of(&file(bytes));
    let (once, twice) = (of(bytes), of(2 * bytes));
    // A single jump is possible, because a larger record may be read although a smaller one was refused early. A file
    // that no reader accepts takes no work.
    let grows = twice == 0 || twice < 3 * once || of(4 * bytes) < 3 * twice;
    assert!(grows, "{once} and {twice} for {shape:?}");
    // The search for the end of a part may scan a fixed number of bytes for each of many starts, which is a large share
    // of a small file.
    let is_within_budget = |work: u64, bytes: usize| work <= work::budget(file(bytes).len());
    let fits = is_within_budget(twice, 2 * bytes) || is_within_budget(of(32 * bytes), 32 * bytes);
    assert!(fits, "{twice} for {} bytes of {shape:?}", file(2 * bytes).len());
}

/// Shapes that once needed quadratic work, or a scan of a fixed part of the file for every few bytes.
const FOUND: [(Gap, Fragments); 76] = [
    (("@article{k, title={a}}\n", ""), ("", "article{k, title={a}\n", "")),
    (("@article{k, title={a}}\n", ""), ("", "article{k,\n", "")),
    (("@article{k, title={a}}\n", ""), ("", "a \n", "{k,")),
    (("@article{k, title={a},\n", "}\n"), ("", "\n a{\n", "")),
    (("TY  - JOUR\nTI  - a\nAB  - b\n", "\nER  - \n"), ("", "TY  - a\nb\n", "")),
    (("TY  - JOUR\nTI  - a\nAB  - b\n", "\nER  - \n"), ("", "TY  - of a b\n", "")),
    (("TY  - JOUR\nTI  - a\nER  - \n", "\n"), ("", "a\n", "")),
    (("TY  - JOUR\nTI  - a\nER  - \n", "\n"), ("", "a\nXX  - b\n", "TI  - c\n")),
    (("TY  - JOUR\nTI  - a\n", "\nER  - \n"), ("", "ER  - a\nAU  - b\n", "")),
    (("TY  - JOUR\nTI  - a\n", "\nER  - \n"), ("", "ER  - TI  - b\n", "")),
    (("[{\"type\":\"book\",\"title\":\"a\"},", "]"), ("", "<![CDATA[]", "")),
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
    (("@article{k, title={a},\n", "}\n"), ("", "a=\"b\" c, ", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=\"b\" c,\n", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=\"b\" c,\nd=\"e", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a='b, ", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=\u{201C}b, ", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=b, c ", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=b, c d e f=", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a=b,,,, ,", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a={b} c},", "")),
    (("@article{k, title={a},\n", "}\n"), ("", "a={b}},d} = {", "")),
    (("@article{k, title = {", "}}"), ("", "\\emph{", "")),
    (("@article{k, title = {", "}}"), ("", "\\frac", "")),
    (("@article{k, title = {", "}}"), ("", "\\end{", "")),
    (("@article{k, title = {", "}}"), ("", "\\frac{a}{", "")),
    (("@article{k, title = {", "}}"), ("", "\nTY  - $", "")),
    (("@article{k, title = {", "}}"), ("", "\\'{\\'{\\'{\\'{?}}}}", "")),
    (("@article{k, title={a}}\n", ""), ("", "@comment{\n", "")),
    (("@string{s={an abbreviated name of a journal}}\n", ""), ("", "@b{k,title=s#s#s}\n", "")),
    (("@string{s={an abbreviated name of a journal}}\n", "@b{k,title=s}"), ("", "@string{s=s#s}\n", "")),
    (("@string{s={an abbreviated name of a journal}}\n@b{k,title=", "}"), ("", "s#", "s")),
    (("@string{s={a}}@book{z,note=s#s}\n", ""), ("", "@a{k,crossref=z,note=s}@string{s=s#s}\n", "")),
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
    (("TY  - JOUR<br>TI  - ", "<br>ER  - <br>"), ("", "<br>", "")),
    (("TY  - JOUR<br>TI  - ", "<br>ER  - <br>"), ("", "<p> ", "")),
    (("TY  - JOUR<br>TI  - a<br>", ""), ("", "TY  - JOUR<br>", "")),
    (("<html><body>TY  - JOUR<br>TI  - a<br>", "</body></html>"), ("", "TYTY  - JOUR", "")),
    (("TY-JOUR\nTI-a\nAU-b\nER-\n", ""), ("", "TY-JOUR\n", "")),
    (("TY-JOUR\nTI-a\nAU-b\nER-\n", ""), ("", "TY  - JOUR\nTY-JOUR\nTI-a\n", "")),
    (("Reference Type:  Book\nTitle: a\n", ""), ("", "Reference Type: a\n", "")),
    (("Title,Authors,DOI\n\u{1b}$B$\"\u{1b}(B,b,c\n", ""), ("", "\u{1b}$B\n", "")),
    (("TY  - JOUR\nTI  - a\n", ""), ("", "\n\nAU  - b\nTI  - c\n", "")),
    (("<1>\nTitle\n  a\n\n", ""), ("", "Authors\n  b\n", "Title\n  c\n")),
    (("Title,X,DOI\na,b,c\n", ""), ("", "a b c d\n", "")),
    (("RT Journal Article\nT1 a\n\n", "\n"), ("}", "@b{z,\nTitle,Authors,DOI\n1\\textbf{", "")),
    (("Title,X,DOI\na,b,c\n", ""), ("a,\"b\n", "b\",\"c\n", "b\"c")),
    (("Title,X,DOI\na,b,c\n", ""), ("a,\"b,c\n", "a,b,c\n", "")),
    (("Title,X,DOI\na,b,c\n", ""), ("", "a,\"b,c\na,\"\"\"b,c\n", "\"")),
    (RIS_AUTHORS, ("", "A y ", "A")),
    (RIS_AUTHORS, ("", "Aa B y ", "")),
    (("Item Title,Item DOI,Content Type,Authors\na,10.5555/a,Article,", "\n"), ("", "a.", "")),
];

#[test]
fn work_of_known_shapes_is_proportional() {
    for (gap, fragments) in FOUND {
        assert_proportional(gap, fragments, 32 * 1024);
    }
}

/// A gap, a piece, two repeated fragments, and a piece after them.
type NestedFragments = (Gap, &'static str, Pair<'static>, &'static str);

const RIS: Gap = ("TY  - JOUR\nTI  - a\nAB  - ", "\nER  - \n");
const RIS_AUTHORS: Gap = ("TY  - JOUR\nTI  - a\nAU  - ", "\nER  - \n");
const BIBTEX: Gap = ("@article{k, title = {", "},\n year = 2020\n}\n");
const BIBTEX_FIELDS: Gap = ("@article{k, title={a},\n", "}\n");
const XML: Gap = ("<xml><records><record><title>", "</title></record></records></xml>");
const XML_RECORDS: Gap = ("<xml><records><record><title>a</title></record>", "</records></xml>");
const JSON: Gap = ("[{\"type\":\"book\",\"title\":\"a\",\"author\":", "}]");
const CSV: Gap = ("Title,X,Authors\na,b,\"", "\"\n");
const NUMBERED: Gap = ("<1>\nTitle\n  a\nSource\n  ", "\n<2>\nTitle\n  b\n");

/// Combinations of what opens and what closes, across the syntaxes that a value may contain.
const COMBINED: [NestedFragments; 34] = [
    (RIS, "", ("<b>&amp;lt;", "</b>"), ""),
    (RIS, "", ("\n  - ", "\nXX  - ("), ")"),
    (RIS, "", ("&#x26;#", "38;"), ";"),
    (RIS_AUTHORS, "", ("(X ", "), and "), "Jr"),
    (RIS_AUTHORS, "", ("A, B; ", "[C] (D) "), "]"),
    (BIBTEX, "", ("{\\textbf{$\\frac{", "}{1}$}}"), "}"),
    (BIBTEX, "", ("\\begin{a}$", "$\\end{a}"), "\\"),
    (BIBTEX, "", ("{\\\"{\\'{", "o}}}"), ""),
    (BIBTEX_FIELDS, "", ("a = \"{\"} # s # {", "} # \"\\\"\","), "\""),
    (BIBTEX_FIELDS, "crossref={k},ids={", ("k,{", "},"), "}"),
    (
        ("@article{k, title={a}}\n", ""),
        "",
        ("@comment{@string{s=s#{", "}}@book{s,crossref=s}"),
        "@a{b,title=s}",
    ),
    (("@article{k, title={a}}\n", ""), "", ("@book(z, ids={z},crossref=\"", "\")@comment("), ")"),
    (XML, "", ("<![CDATA[<!--", "-->]]>"), "]]>"),
    (XML, "", ("<style face=\"&amp;\">", "</style>"), "<"),
    (XML, "", ("<a b='<' c=\">\"", "/><!-- --"), "-->"),
    (XML, " (", ("[{\u{1b}(B<record>", "a@b{c,d={e}}"), "\""),
    (XML, "", ("x@b{c,d={", "a@b{c,d={e}} "), "}"),
    (XML_RECORDS, "", ("<record><title><!-- ", "--></title></record>"), "<record>"),
    (XML_RECORDS, "", ("<record><title>]]>", "</record><record/>"), "</title>"),
    (JSON, "", ("{\"a\":[", "]}"), ""),
    (JSON, "", ("[\"\\\\\\\"", "\",{\"family\":\"\\ud800\"}]"), ""),
    (JSON, "[", ("{\"family\":\"{\\\"}\",\"given\":[[", "]]},"), "1]"),
    (("[{\"type\":\"book\",\"title\":\"a\"},", "]"), "", ("[[{\"title\":\"", "\"}]],"), "{}"),
    (("[{\"type\":\"book\",\"title\":\"a\"},", "]"), "", ("\"]}[{", "{\"a\":\"]\"},"), "\""),
    (CSV, "", ("\"\",\"\"\n\"\"", "\"\"\"\n"), "\""),
    (CSV, "", ("a;\"\"b\"\";(", ");\""), "\""),
    (("Title,Authors,DOI\na,b,c\n", "\n"), "", ("\"a\n\"\"", "\",\"\"\n"), "\""),
    (("Title,X,DOI\na,b,\"", "\"\n"), "", ("10.1000/(", ")10.5555/a;"), "10."),
    (("Title,X,Pages\na,b,", "\n"), "", ("S1-", "2;(3)"), "-"),
    (NUMBERED, "", (" (2020) 1(", ") pp 1-"), ")"),
    (NUMBERED, "", ("J. 2020;1(2", "):3-4. doi:10."), "/"),
    (NUMBERED, "", ("\n<3>\nTitle\n  (", ")\nSource\n  ("), ")"),
    (("1. J. 2020 ", "\n\nT\n\nA B.\n\nabs\n\nPMID: 1\n"), "", ("; 1(", "):2. doi: 10.5555/"), "."),
    (
        ("____________\nDocument 1 of 2\n\na\n\n", "\n"),
        "",
        ("\n____________\n", "Title: (\n\nAbstract: \n"),
        "",
    ),
];

#[test]
fn work_of_combined_shapes_is_proportional() {
    for (gap, first, fragments, last) in COMBINED {
        let file = |bytes| nested_file(gap, first, fragments, last, bytes);
        assert_file_proportional(file, 32 * 1024, &(gap, first, fragments, last));
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

fn nested_cases() -> u32 {
    if is_deep() { 15_000 } else { 200 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_of_any_shape_is_proportional((gap, first, fragment, last) in any_file()) {
        assert_proportional(gap, (first, &fragment, last), 8 * 1024);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: nested_cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_of_any_nested_shape_is_proportional(
        (gap, first, one, last) in any_file(),
        other in prop::collection::vec(prop::sample::select(PIECES.as_slice()), 1..3),
    ) {
        let other = other.concat();
        let file = |bytes| nested_file(gap, first, (&one, &other), last, bytes);
        assert_file_proportional(file, 8 * 1024, &(gap, first, &one, &other, last));
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

/// The size of all texts of a file's references.
fn texts(file: &str) -> usize {
    let (outcomes, _) = read_in_chunks(file.as_bytes(), 64 * 1024, Limits::default()).unwrap();
    let size = |outcome: Outcome| match outcome {
        Outcome::Read(record) => serde_json::to_string(&record.reference).unwrap().len(),
        Outcome::Quarantined(_) => 0,
    };
    outcomes.into_iter().map(size).sum()
}

/// Each entry would otherwise become 4 KiB.
#[test]
fn expansion_work_is_proportional_to_file_size() {
    let long = format!("@string{{s={{{}}}}}\n", "x".repeat(1_000));
    let double = "@string{s=s#s}\n".repeat(12);
    for entries in [
        format!("{long}{}", "@b{k,title=s}\n".repeat(2_000)),
        format!("{long}{}", "@b{k,title=s#s,note=s#s}\n".repeat(2_000)),
        format!("@string{{s={{x}}}}\n{double}{}", "@b{k,title=s}\n".repeat(2_000)),
        format!("{long}@book{{z,title=s#s#s#s}}\n{}", "@b{k,crossref=z}\n".repeat(2_000)),
    ] {
        let (size, bytes) = (texts(&entries), entries.len());
        assert!(size < 64 * bytes, "{size} bytes for {bytes}: {:?}", &entries[entries.len() - 30..]);
    }
}
