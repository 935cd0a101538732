//! Generated reference files in the formats of database exports.

use std::fmt::{self, Write};

const ABSTRACT: &str = "BACKGROUND: Early mobilisation is recommended, and the best time for it is not known. \
    METHODS: We randomised adults to walking within 12 or within 36 hours of surgery (p < 0.05, n > 200). The primary \
    outcome was the length of stay; secondary outcomes were pain, falls and readmission within 30 days. RESULTS: Early \
    mobilisation shortened the stay by 1.8 days (95% CI 0.9-2.7). Falls and readmissions did not differ between the \
    groups. Pain at rest was lower on the second day and the same after one week. CONCLUSION: Patients over eighty \
    benefit from early mobilisation, and hospitals should plan physiotherapy for the first evening after surgery.";

/// A file of one format: its header, its records and its footer.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The file's extension, by which reports name the format.
    pub name: &'static str,
    /// The minimum rate on one core, in megabytes per second, if there is a bound.
    pub bound: Option<f64>,
    opening: &'static str,
    record: fn(usize, &mut String) -> fmt::Result,
    closing: &'static str,
}

/// All formats.
pub const KINDS: [Kind; 7] = [
    Kind { name: "ris", bound: Some(100.0), opening: "", record: ris, closing: "" },
    Kind { name: "nbib", bound: Some(100.0), opening: "", record: nbib, closing: "" },
    Kind {
        name: "endnote.xml",
        bound: Some(60.0),
        opening: "<?xml version=\"1.0\" encoding=\"UTF-8\"?><xml><records>",
        record: endnote_xml,
        closing: "</records></xml>",
    },
    Kind {
        name: "csv",
        bound: Some(100.0),
        opening: "Title,Authors,Year,Source title,Volume,Issue,Page start,Page end,DOI,Link,Abstract,Author Keywords\n",
        record: csv,
        closing: "",
    },
    Kind {
        name: "pubmed.xml",
        bound: None,
        opening: "<?xml version=\"1.0\" ?>\n<PubmedArticleSet>\n",
        record: pubmed_xml,
        closing: "</PubmedArticleSet>",
    },
    Kind { name: "bib", bound: None, opening: "", record: bibtex, closing: "" },
    Kind {
        name: "ciw",
        bound: None,
        opening: "FN Invented Web of Science\nVR 1.0\n",
        record: wos,
        closing: "EF\n",
    },
];

impl Kind {
    /// Returns the approximate number of records in a file of `bytes` bytes.
    pub fn records_for(self, bytes: usize) -> usize {
        const SAMPLE: usize = 1_000;
        let sample: usize = self.pieces(SAMPLE, usize::MAX).map(|piece| piece.len()).sum();
        (bytes * SAMPLE).div_ceil(sample)
    }

    /// Returns a file of `records` records in chunks of about `piece` bytes.
    pub fn pieces(self, records: usize, piece: usize) -> impl Iterator<Item = String> {
        let (mut next, mut opened, mut closed) = (0, false, false);
        std::iter::from_fn(move || {
            if closed {
                return None;
            }
            let opening = if opened { "" } else { self.opening };
            opened = true;
            let mut text = opening.to_owned();
            while next < records && text.len() < piece {
                // Writing to a string cannot fail.
                let _ = (self.record)(next, &mut text);
                next += 1;
            }
            if next == records {
                text.push_str(self.closing);
                closed = true;
            }
            Some(text)
        })
    }
}

/// Wraps text at about 80 characters like PubMed.
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

fn ris(n: usize, out: &mut String) -> fmt::Result {
    let text = ABSTRACT;
    write!(
        out,
        "TY  - JOUR\nAU  - Müller, Jürgen A\nAU  - van der Berg, Anna\nAU  - O'Neil, B.\n\
         TI  - Early mobilisation after hip fracture surgery: trial {n}\nT2  - Journal of Invented Trauma\n\
         JA  - J Inv Trauma\nPY  - 2019/04/12/\nVL  - 12\nIS  - 3\nSP  - {n}\nEP  - {}\nSN  - 0000-0019\n\
         DO  - 10.5555/jit.2019.{n}\nUR  - https://example.org/record/{n}\nKW  - hip fracture\nKW  - aged\n\
         KW  - early ambulation\nAB  - {text}\nER  - \n\n",
        n + 9
    )
}

fn nbib(n: usize, out: &mut String) -> fmt::Result {
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
        wrapped(ABSTRACT)
    )
}

fn endnote_xml(n: usize, out: &mut String) -> fmt::Result {
    let style = |text: &str| format!("<style face=\"normal\" font=\"default\" size=\"100%\">{text}</style>");
    let abstract_text = ABSTRACT.replace('<', "&lt;").replace('>', "&gt;");
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
}

fn csv(n: usize, out: &mut String) -> fmt::Result {
    let text = ABSTRACT;
    writeln!(
        out,
        "\"Early mobilisation after hip fracture surgery, trial {n}\",\"Müller, J.A.; van der Berg, A.\",2019,Journal of \
         Invented Trauma,12,3,{n},{},10.5555/jit.2019.{n},https://example.org/record/{n},\"{text}\",\"hip fracture; \
         aged; early ambulation\"",
        n + 9
    )
}

fn pubmed_xml(n: usize, out: &mut String) -> fmt::Result {
    let abstract_text = ABSTRACT.replace('<', "&lt;").replace('>', "&gt;");
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
}

fn bibtex(n: usize, out: &mut String) -> fmt::Result {
    let text = ABSTRACT;
    write!(
        out,
        "@article{{key{n},\n  author = {{M{{\\\"u}}ller, J{{\\\"u}}rgen and van der Berg, Anna}},\n  title = {{Early \
         mobilisation after {{Hip}} fracture: trial {n}}},\n  journal = {{Journal of Invented Trauma}},\n  year = 2019,\n  \
         volume = {{12}},\n  number = {{3}},\n  pages = {{{n}--{}}},\n  doi = {{10.5555/jit.2019.{n}}},\n  keywords = {{hip \
         fracture, aged}},\n  abstract = {{{text}}}\n}}\n\n",
        n + 9
    )
}

fn wos(n: usize, out: &mut String) -> fmt::Result {
    let text = ABSTRACT;
    write!(
        out,
        "PT J\nAU Muller, J\n   van der Berg, A\nAF Muller, Jurgen\n   van der Berg, Anna\nTI Early mobilisation after hip \
         fracture: trial {n}\nSO JOURNAL OF INVENTED TRAUMA\nDT Article\nDE hip fracture; aged\nAB {text}\nPY 2019\n\
         VL 12\nIS 3\nBP {n}\nEP {}\nDI 10.5555/jit.2019.{n}\nUT WOS:{n}\nER\n\n",
        n + 9
    )
}
