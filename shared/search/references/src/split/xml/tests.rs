//! Records in XML documents, complete and broken.

use super::*;
use crate::split::cut;

fn records(inner: &str) -> Vec<String> {
    cut(&mut Xml::endnote(1000), &format!("<?xml version=\"1.0\"?><xml><records>{inner}</records></xml>"))
}

#[test]
fn elements_sharing_a_prefix_are_not_records() {
    let one = "<record><rec-number>1</rec-number><ref-type name=\"a > b\">17</ref-type></record>";
    assert_eq!(records(&format!("{one}\n{one}")), [one, one]);
}

#[test]
fn comments_and_cdata_hide_their_content() {
    let one = "<record id='1'><title><![CDATA[</record>]]></title><!-- </record> --></record>";
    assert_eq!(records(&format!("<!-- <record> -->{one}")), [one]);
}

#[test]
fn unclosed_record_affects_only_itself() {
    let text = "<record><title>a<record><title>b</title></record>";
    let unclosed = "!it is not closed by </record>";
    assert_eq!(records(text), [unclosed, "<record><title>b</title></record>"]);
    assert_eq!(records("<record><title>a"), [unclosed]);
}

#[test]
fn less_than_sign_in_text_is_literal() {
    let one = "<record><abstract>p < 0.05, n<five</abstract></record>";
    assert_eq!(records(one), [one]);
}

#[test]
fn truncated_document_is_malformed() {
    let text = "<xml><records><record><title>a</title></record><record>";
    assert!(cut(&mut Xml::endnote(1000), text)[0].starts_with("Malformed"));
}

#[test]
fn doctype_is_refused_anywhere() {
    assert_eq!(records("<!doctype x>"), ["Doctype"]);
    assert_eq!(records("<record><!DOCTYPE x></record>"), ["Doctype"]);
}

fn articles(text: &str) -> Vec<String> {
    cut(&mut Xml::pubmed(1000), text)
}

#[test]
fn pubmed_articles_and_books_are_records() {
    let text = "<PubmedArticleSet><PubmedArticle>a</PubmedArticle><PubmedBookArticle/><DeleteCitation/>\
        </PubmedArticleSet>";
    assert_eq!(articles(text), ["<PubmedArticle>a</PubmedArticle>", "<PubmedBookArticle/>"]);
    assert_eq!(articles("<PubmedArticle>a</PubmedArticle>"), ["<PubmedArticle>a</PubmedArticle>"]);
}

#[test]
fn external_doctype_is_skipped_internal_refused() {
    let set = "<PubmedArticleSet><PubmedArticle>a</PubmedArticle></PubmedArticleSet>";
    let public = "<!DOCTYPE PubmedArticleSet PUBLIC \"-//NLM>[\" \"https://example.org/a.dtd\">";
    assert_eq!(articles(&format!("{public}{set}")).len(), 1);
    for refused in ["<!DOCTYPE a [<!ENTITY b \"c\">]>", "<!DOCTYPE a SYSTEM \"b\" []>", "<!DOCTYPE a"] {
        assert_eq!(articles(&format!("{refused}{set}")), ["Doctype"], "{refused}");
    }
    assert_eq!(articles("<PubmedArticleSet><!DOCTYPE a></PubmedArticleSet>"), ["Doctype"]);
}
