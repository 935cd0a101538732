//! How fast files are read on one core: generates a file per format in memory, pushes it in chunks of 64 KiB
//! and prints megabytes and records per second, and how the time per record grows with the file.
//!
//! `cargo run --release -p references --example throughput [records] [format] [short]`
//!
//! `short` leaves most of the abstracts away, which shows what a record costs beside its bytes.

// A program to look at numbers with: it may print and fail.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{fmt::Write, sync::OnceLock, time::Instant};

use references::{Limits, Reader};

const CHUNK: usize = 64 * 1024;
/// The best of so many runs: the others were disturbed.
const RUNS: usize = 5;

const ABSTRACT: &str = "BACKGROUND: Early mobilisation is recommended, and the best time for it is not known. \
    METHODS: We randomised adults to walking within 12 or within 36 hours of surgery (p < 0.05, n > 200). The primary \
    outcome was the length of stay; secondary outcomes were pain, falls and readmission within 30 days. RESULTS: Early \
    mobilisation shortened the stay by 1.8 days (95% CI 0.9-2.7). Falls and readmissions did not differ between the \
    groups. Pain at rest was lower on the second day and the same after one week. CONCLUSION: Patients over eighty \
    benefit from early mobilisation, and hospitals should plan physiotherapy for the first evening after surgery.";

/// Whether abstracts are left out but for their beginning.
static SHORT: OnceLock<bool> = OnceLock::new();

fn abstract_text() -> &'static str {
    if SHORT.get() == Some(&true) { &ABSTRACT[..80] } else { ABSTRACT }
}

type Generator = fn(usize) -> String;

const FORMATS: &[(&str, Generator)] = &[
    ("ris", ris),
    ("nbib", nbib),
    ("endnote-xml", endnote_xml),
    ("pubmed-xml", pubmed_xml),
    ("bibtex", bibtex),
    ("wos", wos),
    ("csv", csv),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let records: usize = arguments.next().map_or(80_000, |text| text.parse().unwrap());
    let wanted = arguments.next();
    SHORT.get_or_init(|| arguments.next().is_some_and(|text| text == "short"));
    println!(
        "{:<12} {:>9} {:>9} {:>8} {:>11} {:>18}",
        "format", "records", "MB", "MB/s", "records/s", "1/8 to all"
    );
    for (name, generate) in FORMATS
        .iter()
        .filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == "all" || wanted == *name))
    {
        let (small, large) = (file(*generate, records / 8), file(*generate, records));
        let (few, many) = (seconds(&small, records / 8), seconds(&large, records));
        let megabytes = large.len() as f64 / 1e6;
        let growth = (many / records as f64) / (few / (records / 8) as f64);
        println!(
            "{name:<12} {records:>9} {megabytes:>9.1} {:>8.1} {:>11.0} {growth:>18.2}",
            megabytes / many,
            records as f64 / many
        );
    }
}

fn file(generate: Generator, records: usize) -> Vec<u8> {
    generate(records).into_bytes()
}

/// Seconds for reading the file, the best of several runs.
fn seconds(file: &[u8], records: usize) -> f64 {
    let runs = (0..RUNS).map(|_| {
        let begun = Instant::now();
        let mut reader = Reader::new(Limits::default());
        for chunk in file.chunks(CHUNK) {
            std::hint::black_box(reader.push(chunk).unwrap());
        }
        let (_, report) = reader.finish().unwrap();
        assert_eq!((report.records, report.quarantined), (records as u64, 0));
        begun.elapsed().as_secs_f64()
    });
    runs.fold(f64::MAX, f64::min)
}

fn ris(records: usize) -> String {
    let mut out = String::new();
    let text = abstract_text();
    for n in 0..records {
        write!(
            out,
            "TY  - JOUR\nAU  - Müller, Jürgen A\nAU  - van der Berg, Anna\nAU  - O'Neil, B.\n\
             TI  - Early mobilisation after hip fracture surgery: trial {n}\nT2  - Journal of Invented Trauma\n\
             JA  - J Inv Trauma\nPY  - 2019/04/12/\nVL  - 12\nIS  - 3\nSP  - {n}\nEP  - {}\nSN  - 0000-0019\n\
             DO  - 10.5555/jit.2019.{n}\nUR  - https://example.org/record/{n}\nKW  - hip fracture\nKW  - aged\n\
             KW  - early ambulation\nAB  - {text}\nER  - \n\n",
            n + 9
        )
        .unwrap();
    }
    out
}

fn nbib(records: usize) -> String {
    let mut out = String::new();
    for n in 0..records {
        write!(
            out,
            "PMID- {}\nOWN - NLM\nSTAT- MEDLINE\nIS  - 0000-0027 (Electronic)\nVI  - 12\nIP  - 4\nDP  - 2020 Apr\n\
             TI  - Early mobilisation after hip fracture surgery in patients over eighty: a\n      randomised controlled \
             trial {n}.\nPG  - 335-41\nLID - 10.5555/joft.{n} [doi]\nAB  - {}\nFAU - Ferreira, Joana M\nAU  - Ferreira JM\n\
             AD  - Department of Orthopaedics, Invented University Hospital, Porto.\nFAU - van der Linde, Pieter\n\
             AU  - van der Linde P\nLA  - eng\nPT  - Journal Article\nTA  - J Fict Trauma\nJT  - Journal of fictional \
             trauma\nMH  - Aged, 80 and over\nMH  - *Early Ambulation\nMH  - Hip Fractures/*surgery\nOT  - hip fracture\n\
             AID - 10.5555/joft.{n} [doi]\nSO  - J Fict Trauma. 2020 Apr;12(4):335-41.\n\n",
            n + 1,
            wrapped(abstract_text())
        )
        .unwrap();
    }
    out
}

/// In lines of some 80 characters, as PubMed wraps them.
fn wrapped(text: &str) -> String {
    let (mut out, mut width) = (String::new(), 0);
    for word in text.split_whitespace() {
        if width > 74 {
            out.push_str("\n      ");
            width = 0;
        }
        out.push_str(word);
        out.push(' ');
        width += word.len() + 1;
    }
    out
}

fn endnote_xml(records: usize) -> String {
    let style = |text: &str| format!("<style face=\"normal\" font=\"default\" size=\"100%\">{text}</style>");
    let abstract_text = abstract_text().replace('<', "&lt;").replace('>', "&gt;");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?><xml><records>");
    for n in 0..records {
        write!(
            out,
            "<record><database name=\"A.enl\" path=\"A.enl\">A.enl</database><source-app name=\"EndNote\" \
             version=\"20.4\">EndNote</source-app><rec-number>{n}</rec-number><ref-type name=\"Journal Article\">17</ref-type>\
             <contributors><authors><author>{}</author><author>{}</author></authors></contributors><titles><title>{}</title>\
             <secondary-title>{}</secondary-title></titles><pages>{}</pages><volume>{}</volume><number>{}</number>\
             <keywords><keyword>{}</keyword><keyword>{}</keyword></keywords><dates><year>{}</year></dates>\
             <abstract>{}</abstract><electronic-resource-num>{}</electronic-resource-num></record>",
            style("Müller, Jürgen A"),
            style("van der Berg, Anna"),
            style(&format!("Early mobilisation after surgery &amp; rest: trial {n}")),
            style("Journal of Invented Trauma"),
            style("88-97"),
            style("31"),
            style("2"),
            style("hip fracture"),
            style("aged"),
            style("2021"),
            style(&abstract_text),
            style(&format!("10.5555/jit.{n}")),
        )
        .unwrap();
    }
    out + "</records></xml>"
}

fn csv(records: usize) -> String {
    let mut out = String::from(
        "Title,Authors,Year,Source title,Volume,Issue,Page start,Page end,DOI,Link,Abstract,Author Keywords\n",
    );
    let text = abstract_text();
    for n in 0..records {
        writeln!(
            out,
            "\"Early mobilisation after hip fracture surgery, trial {n}\",\"Müller, J.A.; van der Berg, A.\",2019,Journal of \
             Invented Trauma,12,3,{n},{},10.5555/jit.2019.{n},https://example.org/record/{n},\"{text}\",\"hip fracture; \
             aged; early ambulation\"",
            n + 9
        )
        .unwrap();
    }
    out
}

fn pubmed_xml(records: usize) -> String {
    let abstract_text = abstract_text().replace('<', "&lt;").replace('>', "&gt;");
    let mut out = String::from("<?xml version=\"1.0\" ?>\n<PubmedArticleSet>\n");
    for n in 0..records {
        writeln!(
            out,
            "<PubmedArticle><MedlineCitation Status=\"MEDLINE\"><PMID Version=\"1\">{}</PMID><Article><Journal><ISSN \
             IssnType=\"Electronic\">0000-0027</ISSN><JournalIssue><Volume>12</Volume><Issue>4</Issue><PubDate><Year>2020\
             </Year><Month>Apr</Month></PubDate></JournalIssue><Title>Journal of fictional trauma</Title></Journal>\
             <ArticleTitle>Early mobilisation after hip fracture: trial {n}.</ArticleTitle><Pagination><MedlinePgn>335-41\
             </MedlinePgn></Pagination><ELocationID EIdType=\"doi\">10.5555/joft.{n}</ELocationID><Abstract>\
             <AbstractText>{abstract_text}</AbstractText></Abstract><AuthorList><Author><LastName>Ferreira</LastName>\
             <ForeName>Joana M</ForeName><Initials>JM</Initials></Author><Author><LastName>van der Linde</LastName>\
             <ForeName>Pieter</ForeName></Author></AuthorList><PublicationTypeList><PublicationType>Journal Article\
             </PublicationType></PublicationTypeList></Article><MeshHeadingList><MeshHeading><DescriptorName UI=\"D1\">Aged\
             </DescriptorName></MeshHeading></MeshHeadingList></MedlineCitation></PubmedArticle>",
            n + 1
        )
        .unwrap();
    }
    out + "</PubmedArticleSet>"
}

fn bibtex(records: usize) -> String {
    let mut out = String::new();
    let text = abstract_text();
    for n in 0..records {
        write!(
            out,
            "@article{{key{n},\n  author = {{M{{\\\"u}}ller, J{{\\\"u}}rgen and van der Berg, Anna}},\n  title = {{Early \
             mobilisation after {{Hip}} fracture: trial {n}}},\n  journal = {{Journal of Invented Trauma}},\n  year = 2019,\n  \
             volume = {{12}},\n  number = {{3}},\n  pages = {{{n}--{}}},\n  doi = {{10.5555/jit.2019.{n}}},\n  keywords = {{hip \
             fracture, aged}},\n  abstract = {{{text}}}\n}}\n\n",
            n + 9
        )
        .unwrap();
    }
    out
}

fn wos(records: usize) -> String {
    let mut out = String::from("FN Invented Web of Science\nVR 1.0\n");
    let text = abstract_text();
    for n in 0..records {
        write!(
            out,
            "PT J\nAU Muller, J\n   van der Berg, A\nAF Muller, Jurgen\n   van der Berg, Anna\nTI Early mobilisation after hip \
             fracture: trial {n}\nSO JOURNAL OF INVENTED TRAUMA\nDT Article\nDE hip fracture; aged\nAB {text}\nPY 2019\n\
             VL 12\nIS 3\nBP {n}\nEP {}\nDI 10.5555/jit.2019.{n}\nUT WOS:{n}\nER\n\n",
            n + 9
        )
        .unwrap();
    }
    out + "EF\n"
}
