//! The special cases of PubMed XML, BibTeX and Web of Science.

use references::{Error, Limits, Outcome, Reader};

use crate::{read, references};

const DOCTYPE: &str = "<!DOCTYPE PubmedArticleSet PUBLIC \"-//NLM//DTD PubMedArticle, 1st January 2019//EN\" \
    \"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_190101.dtd\">";

fn pubmed(article: &str) -> String {
    format!(
        "<?xml version=\"1.0\" ?>\n{DOCTYPE}\n<PubmedArticleSet><PubmedArticle>{article}</PubmedArticle></PubmedArticleSet>"
    )
}

#[test]
fn bibtex_entries_without_sign_are_read() {
    let found = references(
        "article{a,\n title={A},\n author={Roe, Ann}}\n\n@book{p, title={P}}\ninbook{b, title={B}, crossref={p}}\n",
    );
    let titles: Vec<_> = found.iter().map(|reference| reference.title.as_str()).collect();
    assert_eq!(titles, ["A", "P", "B"]);
    assert_eq!((found[0].r#type.as_deref(), found[0].extra["repaired"].len()), (Some("article"), 1));
    assert_eq!(found[2].journal.as_deref(), Some("P"));
}

#[test]
fn pubmed_xml_fields_are_read() {
    let text = pubmed(
        "<MedlineCitation Status=\"MEDLINE\"><PMID Version=\"1\">42</PMID><DateCompleted><Year>2018</Year></DateCompleted>\
        <Article><Journal><ISSN IssnType=\"Print\">0000-0019</ISSN><JournalIssue><Volume>3</Volume><Issue>2</Issue>\
        <PubDate><Year>2018</Year><Month>May</Month><Day>07</Day></PubDate></JournalIssue><Title>Journal of tests</Title>\
        <ISOAbbreviation>J Tests</ISOAbbreviation></Journal><ArticleTitle>On &#946;<sub>2</sub> &amp; <i>E. coli</i>.\
        </ArticleTitle><Pagination><StartPage>283</StartPage><EndPage>298</EndPage><MedlinePgn>283-98</MedlinePgn>\
        </Pagination><ELocationID EIdType=\"pii\">S1</ELocationID><ELocationID EIdType=\"doi\">10.5555/A.1</ELocationID>\
        <Abstract><AbstractText Label=\"AIM\">One\n  line.</AbstractText><AbstractText>Two.</AbstractText></Abstract>\
        <AuthorList><Author><LastName>O'Byrne</LastName><ForeName>Paul M</ForeName><Initials>PM</Initials><Suffix>Jr</Suffix>\
        <AffiliationInfo><Affiliation>Somewhere</Affiliation></AffiliationInfo></Author><Author><CollectiveName>The Group\
        </CollectiveName></Author></AuthorList><PublicationTypeList><PublicationType UI=\"D1\">Journal Article</PublicationType>\
        <PublicationType>Review</PublicationType></PublicationTypeList></Article><CommentsCorrectionsList>\
        <CommentsCorrections><PMID>77</PMID></CommentsCorrections></CommentsCorrectionsList><MeshHeadingList><MeshHeading>\
        <DescriptorName>Asthma</DescriptorName></MeshHeading></MeshHeadingList><KeywordList><Keyword>inhaler</Keyword>\
        </KeywordList></MedlineCitation><PubmedData><History><PubMedPubDate><Year>1999</Year></PubMedPubDate></History>\
        <ReferenceList><Reference><ArticleIdList><ArticleId IdType=\"doi\">10.5555/other</ArticleId></ArticleIdList>\
        </Reference></ReferenceList><ArticleIdList><ArticleId IdType=\"pubmed\">42</ArticleId>\
        <ArticleId IdType=\"pmc\">PMC1</ArticleId></ArticleIdList></PubmedData>",
    );
    let found = &references(&text)[0];
    assert_eq!(found.title, "On β2 & E. coli.");
    assert_eq!(found.authors, ["O'Byrne, Paul M, Jr", "The Group"]);
    assert_eq!((found.year, found.date.as_deref()), (Some(2018), Some("2018-05-07")));
    assert_eq!(found.journal.as_deref(), Some("Journal of tests"));
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("3"), Some("2")));
    assert_eq!(
        (found.pages.as_deref(), found.pages_normalized.as_deref()),
        (Some("283-98"), Some("283-298"))
    );
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/a.1"), Some("42")));
    assert_eq!(found.r#abstract.as_deref(), Some("AIM: One line.\nTwo."));
    assert_eq!(found.keywords, ["inhaler", "Asthma"]);
    assert_eq!(found.r#type.as_deref(), Some("Journal Article; Review"));
    let kept = |name: &str| found.extra.get(name).map(|values| values.join("|"));
    assert_eq!(kept("ISSN").as_deref(), Some("0000-0019"));
    assert_eq!(kept("Affiliation").as_deref(), Some("Somewhere"));
    assert_eq!((kept("pii").as_deref(), kept("pmc").as_deref()), (Some("S1"), Some("PMC1")));
    assert_eq!(kept("EndPage").as_deref(), Some("298"));
}

#[test]
fn book_editors_replace_missing_authors_only() {
    let list = |kind: &str, name: &str| {
        format!("<AuthorList Type=\"{kind}\"><Author><LastName>{name}</LastName></Author></AuthorList>")
    };
    let book = |people: &str| {
        format!(
            "<PubmedArticleSet><PubmedBookArticle><BookDocument><PMID>5</PMID><Book><BookTitle>A</BookTitle>{people}\
        </Book></BookDocument></PubmedBookArticle></PubmedArticleSet>"
        )
    };
    let both = &references(&book(&(list("editors", "Ed") + &list("authors", "Au"))))[0];
    assert_eq!((both.title.as_str(), both.authors.as_slice()), ("A", ["Au".to_owned()].as_slice()));
    assert_eq!(references(&book(&list("editors", "Ed")))[0].authors, ["Ed"]);
}

#[test]
fn pubmed_xml_with_internal_subset_is_refused() {
    let bomb = "<!DOCTYPE PubmedArticleSet [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><PubmedArticleSet><PubmedArticle>\
        <ArticleTitle>&b;</ArticleTitle></PubmedArticle></PubmedArticleSet>";
    assert_eq!(read(bomb.as_bytes()).unwrap_err(), Error::Doctype { name: Some("PubMed XML") });
}

#[test]
fn bibtex_fields_are_read() {
    let text = r#"% export of 2020
@string{jt = "Journal of Tests"}
@Article{doe2020,
  author = {Doe, Jane and van der Berg, Anna and {The Study Group} and others},
  title = "A {DNA} study of na{\"\i}ve \& caf\'{e} people: {$\alpha$} = 1",
  journal = {Journal of } # "Tests",
  year = 2020, month = apr,
  volume = {5}, number = {2}, pages = {123--9},
  doi = {https://doi.org/10.5555/A\_B},
  keywords = {one, two; three},
  abstract = {First
    line.},
  issn = {0000-0019}, url = {https://example.org/a_b}, file = {a.pdf}
}
"#;
    let found = &references(text)[0];
    assert_eq!(found.title, "A DNA study of naïve & café people: α = 1");
    assert_eq!(found.authors, ["Doe, Jane", "van der Berg, Anna", "The Study Group"]);
    assert_eq!((found.year, found.date.as_deref()), (Some(2020), Some("2020-04")));
    assert_eq!(found.journal.as_deref(), Some("Journal of Tests"));
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("5"), Some("2")));
    assert_eq!((found.pages.as_deref(), found.pages_normalized.as_deref()), (Some("123–9"), Some("123-129")));
    assert_eq!(found.doi.as_deref(), Some("10.5555/a_b"));
    assert_eq!(found.keywords, ["one, two", "three"]);
    assert_eq!(found.r#abstract.as_deref(), Some("First line."));
    assert_eq!(found.url.as_deref(), Some("https://example.org/a_b"));
    assert_eq!(found.r#type.as_deref(), Some("Article"));
    assert_eq!(
        (found.extra["issn"].as_slice(), found.extra["key"].as_slice()),
        (["0000-0019".to_owned()].as_slice(), ["doe2020".to_owned()].as_slice())
    );
    assert_eq!(found.extra.get("file"), None);
}

#[test]
fn unbalanced_entry_is_partially_read() {
    let text = "@article{a, title = {A}\n@article{b, title = {B}}\n@article{c, title = {C}";
    let found = references(text);
    let titles: Vec<&str> = found.iter().map(|found| found.title.as_str()).collect();
    assert_eq!(titles, ["A", "B", "C"]);
    let repaired = |at: usize| found[at].extra.contains_key("repaired");
    assert_eq!([repaired(0), repaired(1), repaired(2)], [true, false, true]);
    let (outcomes, _) = read(b"@article{a, title = {A}}\n@article{b, = {B}\n@misc{c, title = {C}}").unwrap();
    assert!(
        matches!(&outcomes[1], Outcome::Quarantined(bad) if bad.reason.contains("braces")),
        "{outcomes:?}"
    );
}

#[test]
fn abbreviations_are_resolved_in_any_chunking() {
    let text = "@string{jt = \"J Tests\"}\n@string(yr = 2020)\n@article{a, title={A}, journal=jt # { B}, year=yr}\n\
        @string{jt = {Other}}\n@article{b, title={B}, journal=JT, volume=missing}\n";
    for chunk in [1, 1000] {
        let (outcomes, _) =
            crate::read_in_chunks(text.as_bytes(), chunk, references::Limits::default()).unwrap();
        let found: Vec<_> = outcomes.into_iter().map(crate::reference).collect();
        assert_eq!((found[0].journal.as_deref(), found[0].year), (Some("J Tests B"), Some(2020)));
        assert_eq!(
            (found[1].journal.as_deref(), found[1].volume.as_deref()),
            (Some("Other"), Some("missing"))
        );
    }
}

#[test]
fn entry_inherits_from_later_parent() {
    let text = "@inproceedings{a, author={Roe, J}, title={A}, pages={1-2}, crossref={p}}\n@inproceedings{b, title={B}, \
        year=1999, crossref={p}}\n@proceedings{p, title={Proc}, subtitle={X}, year=2001, editor={Ed, I}, pages={1-500}}\n\
        @misc{c, author={Poe, E}, crossref={p}}";
    let by_alias = text.replace("{p,", "{q, ids = {o, P},");
    for text in [text, &by_alias] {
        takes_over(&references(text));
    }
}

fn takes_over(found: &[references::Reference]) {
    assert_eq!((found[0].journal.as_deref(), found[0].year), (Some("Proc: X"), Some(2001)));
    assert_eq!((found[0].authors[0].as_str(), found[0].pages.as_deref()), ("Roe, J", Some("1-2")));
    assert_eq!((found[1].journal.as_deref(), found[1].year), (Some("Proc: X"), Some(1999)));
    assert_eq!((found[1].authors[0].as_str(), found[1].pages.as_deref()), ("Ed, I", None));
    assert_eq!((found[3].title.as_str(), found[3].year), ("Proc: X", Some(2001)));
}

#[test]
fn entry_inherits_from_earlier_parent_after_resume() {
    let text = "@book{A, ids={B}, title={Whole}, year=2001}\n@article{a, title={A}}\n@inbook{c, title={C}, crossref={b}}\n";
    let file = [text.as_bytes(), &[b'\n'; 70_000], text.as_bytes()].concat();
    let years = |outcomes: Vec<Outcome>| {
        let year = |outcome| match outcome {
            Outcome::Read(record) => record.reference.year,
            Outcome::Quarantined(_) => panic!("all can be read"),
        };
        outcomes.into_iter().map(year).collect::<Vec<_>>()
    };
    let (mut reader, mut at, mut begun) = (Reader::new(Limits::default()), 0, 0);
    let mut found = Vec::new();
    while at < file.len() {
        let end = file.len().min(at + 50);
        found.extend(years(reader.push(&file[at..end]).unwrap()));
        at = end;
        // At every possible checkpoint, another reader resumes.
        if let Some(checkpoint) = reader.checkpoint().filter(|checkpoint| checkpoint.byte() > begun) {
            reader = Reader::resume(Limits::default(), &checkpoint).unwrap();
            begun = checkpoint.byte();
            at = usize::try_from(begun).unwrap();
        }
    }
    found.extend(years(reader.finish().unwrap().0));
    assert_eq!(found, [Some(2001), None, Some(2001), Some(2001), None, Some(2001)]);
}

#[test]
fn bibtex_title_book_and_series_are_distinguished() {
    let text = "@inproceedings{a, title={A {B}}, subtitle={c}, booktitle={Proc.}, booksubtitle={P}, series={LNCS 5}, \
        doi={{10.5555/a{\\_}b}}, date={2019-02-03}, year=2018, art_number={77}}";
    let found = &references(text)[0];
    assert_eq!((found.title.as_str(), found.journal.as_deref()), ("A B: c", Some("Proc. P")));
    assert_eq!((found.doi.as_deref(), found.date.as_deref()), (Some("10.5555/a_b"), Some("2019-02-03")));
    assert_eq!((found.pages.as_deref(), found.extra["series"][0].as_str()), (Some("77"), "LNCS 5"));
}

#[test]
fn ris_article_number_is_its_page() {
    let text = "TY  - JOUR\nTI  - A\nC7  - 105\nER  - \nTY  - EBOOK\nTI  - B\nC7  - PMC105\nER  - \n\
        TY  - JOUR\nTI  - C\nC7  - 105\nSP  - 1\nEP  - 9\nER  - \n";
    let found = references(text);
    let pages = found.iter().map(|one| one.pages.as_deref()).collect::<Vec<_>>();
    assert_eq!(pages, [Some("105"), None, Some("1-9")]);
    assert_eq!((found[1].extra["C7"][0].as_str(), found[2].extra["C7"][0].as_str()), ("PMC105", "105"));
}

#[test]
fn pmid_is_read_from_note() {
    let text = "@article{a, title={A}, note={{PMID:} 123\nPMCID: PMC4}}\n@article{b, title={B}, note={PMID: 5}, pmid={6}}\n\
        @article{c, title={C}, note={See PMID 7}}";
    let found = references(text);
    let pmids = found.iter().map(|one| one.pmid.as_deref()).collect::<Vec<_>>();
    assert_eq!(pmids[0], Some("123"));
    assert_eq!(pmids[1], Some("6"));
    assert_eq!(pmids[2], None);
    assert_eq!(found[0].extra["note"], ["PMID: 123 PMCID: PMC4"]);
}

#[test]
fn web_of_science_fields_are_read() {
    let text = "FN Clarivate Analytics Web of Science\nVR 1.0\nPT J\nAU Doe, J\n   van der Berg, A\nAF Doe, Jane\n   van der Berg, \
        Anna\nCA Study Grp\nTI A title\n   that goes on\nSO JOURNAL OF TESTS\nDT Article; Proceedings Paper\nDE one; two\n   \
        words\nID three\nAB First.\n   Second.\nJ9 J TESTS\nPD JUN 8\nPY 2004\nVL 43\nIS 22\nBP 7003\nEP 7016\n\
        DI 10.5555/BI\nPM 15170338\nCR A, 1986, V83\n   B, 1990, V1\nUT WOS:1\nER\n\nPT J\nTI b\nER\nEF\n";
    let all = references(text);
    let found = &all[0];
    assert_eq!(found.title, "A title that goes on");
    assert_eq!(found.authors, ["Doe, Jane", "van der Berg, Anna", "Study Grp"]);
    assert_eq!((found.year, found.date.as_deref()), (Some(2004), Some("2004-06-08")));
    assert_eq!(found.journal.as_deref(), Some("JOURNAL OF TESTS"));
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("43"), Some("22")));
    assert_eq!(found.pages.as_deref(), Some("7003-7016"));
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/bi"), Some("15170338")));
    assert_eq!(found.keywords, ["one", "two words", "three"]);
    assert_eq!(found.r#abstract.as_deref(), Some("First. Second."));
    assert_eq!(found.r#type.as_deref(), Some("Article; Proceedings Paper"));
    assert_eq!(found.extra["CR"], ["A, 1986, V83", "B, 1990, V1"]);
    assert_eq!(found.extra["J9"], ["J TESTS"]);
    assert_eq!(all[1].title, "b");
}

#[test]
fn sections_of_abstracts_have_their_labels() {
    let text = "<PubmedArticleSet><PubmedArticle><ArticleTitle>A</ArticleTitle><Abstract><AbstractText Label=\"UNLABELLED\">One.</AbstractText>\
        <AbstractText Label=\"AIM\">Two.</AbstractText></Abstract></PubmedArticle></PubmedArticleSet>";
    assert_eq!(references(text)[0].r#abstract.as_deref(), Some("One.\nAIM: Two."));
}
