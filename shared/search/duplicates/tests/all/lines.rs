//! Every line of the table, and every condition of it.

use duplicates::{Reason, Tier, compare};
use rstest::rstest;

use crate::records::record;

use Tier::{Certain, Likely, Possible};

/// A complete record, from which the others differ.
const FULL: &str = "t=Oral zinc for the prevention of common colds in school children; a=Kurugol, Z+Akilli, M; y=2006; \
    j=Acta Paediatrica; v=95; i=10; p=1175-1181; d=10.1000/zinc.2006; m=17000001; s=colds are common";
/// The same record without identifiers.
const PLAIN: &str = "t=Oral zinc for the prevention of common colds in school children; a=Kurugol, Z+Akilli, M; y=2006; \
    j=Acta Paediatrica; v=95; i=10; p=1175-1181";
const OTHER_TITLE: &str = "t=Une etude de la vitamine chez les nourrissons de la ville de Lyon";

#[track_caller]
fn assert_comparison(one: &str, other: &str, expected: Option<(Tier, Reason)>) {
    let (one, other) = (record(one), record(other));
    assert_eq!(compare(&one, &other), expected);
    assert_eq!(compare(&other, &one), expected, "the other way round");
    if expected.is_some() {
        let shared = one.keys().into_iter().filter(|key| other.keys().contains(key)).count();
        assert!(shared > 0, "they share no key, so they would not be compared");
    }
}

/// The changes to both records, the changes to the second record, and the expected result.
#[rstest]
#[case::itself("", "", Certain, Reason::Pmid)]
#[case::pmid_and_title("d=", "a=;y=1999;p=1;v=1", Certain, Reason::Pmid)]
#[case::pmid_and_author("d=", "t=Something else altogether about vitamins", Certain, Reason::Pmid)]
#[case::pmid_alone(
    "d=",
    "t=Something else altogether about vitamins;a=Smith, J",
    Possible,
    Reason::PmidAlone
)]
#[case::registration("d=;m=;x=NCT00000001", "t=Une etude de la vitamine;a=Smith, J", Certain, Reason::Number)]
#[case::number_and_title("d=;m=;w=WOS:1", "a=;y=1999;p=1;v=1", Certain, Reason::Number)]
#[case::number_and_doi("m=;w=WOS:1", "t=Something else;a=Smith, J", Possible, Reason::Doi)]
#[case::doi_and_title("m=", "p=;v=;y=2007", Certain, Reason::DoiTitle)]
#[case::doi_title_and_page("m=", "a=Smith, J", Certain, Reason::DoiTitlePage)]
#[case::doi_title_and_journal("m=", "a=Smith, J;p=", Likely, Reason::DoiTitleJournal)]
#[case::doi_title_and_author("m=", "p=3-9", Likely, Reason::DoiTitleAuthor)]
#[case::doi_without_title("m=", "t=", Likely, Reason::DoiUntitled)]
#[case::doi_author_and_page("m=", "t=Une etude de la vitamine", Certain, Reason::DoiAuthorPage)]
#[case::doi_author_and_abstract("m=", "t=Une etude de la vitamine;p=;y=2001", Likely, Reason::DoiAuthorAlike)]
#[case::doi_and_author("m=;s=", "t=Une etude de la vitamine;p=", Likely, Reason::DoiAuthor)]
#[case::doi_of_a_supplement("m=;s=", "t=Une etude de la vitamine;a=Smith, J", Possible, Reason::Doi)]
fn identifiers_decide_together_with_other_fields(
    #[case] both: &str,
    #[case] second: &str,
    #[case] tier: Tier,
    #[case] reason: Reason,
) {
    assert_comparison(&format!("{FULL};{both}"), &format!("{FULL};{both};{second}"), Some((tier, reason)));
}

#[rstest]
#[case::page_and_volume("", "j=;y=", Certain, Reason::TitlePage)]
#[case::page_and_journal("", "v=;y=;j=Acta Paediatr", Certain, Reason::TitlePage)]
#[case::page_and_year(
    "",
    "v=;j=;y=2007;t=Oral zinc for the prevention of common cold in school children",
    Certain,
    Reason::TitlePage
)]
#[case::another_doi_elsewhere("d=10.1000/a", "d=10.1000/b;v=12", Possible, Reason::TitlePageElsewhere)]
#[case::another_doi_at_the_same_place("d=10.1000/a", "d=10.1000/b", Likely, Reason::TitlePage)]
#[case::year_and_journal("p=", "v=", Certain, Reason::TitleYearAuthor)]
#[case::year_alone("p=", "j=", Likely, Reason::TitleYearAuthor)]
#[case::volume_in_print_and_on_the_web("p=", "y=2007", Likely, Reason::TitleVolumeAuthor)]
#[case::volume_and_issue("", "y=2007;p=12", Likely, Reason::TitleVolumeAuthor)]
#[case::other_pages_of_an_issue(
    "",
    "p=12;t=Oral zinc for the prevention of common cold in school children",
    Possible,
    Reason::Title
)]
#[case::two_years_apart("p=;v=", "y=2008", Likely, Reason::TitleAuthor)]
#[case::no_year("p=;v=;j=", "y=", Likely, Reason::TitleAuthor)]
#[case::without_author("p=", "a=;y=2007", Likely, Reason::TitleJournal)]
#[case::pages_a_slip_apart("i=", "p=1157-1181", Likely, Reason::TitleNearbyPage)]
#[case::pages_at_most_five_apart("i=", "p=1180", Likely, Reason::TitleNearbyPage)]
#[case::nobody_named(
    "a=;p=;t=Zinc and winter colds",
    "t=Zinc & Winter Colds",
    Likely,
    Reason::TitleJournalVolume
)]
#[case::the_title_alone("p=", "y=1990;v=;j=", Possible, Reason::Title)]
#[case::sister_journals("v=", "j=Acta Paediatrica Supplement", Likely, Reason::TitlePage)]
#[case::sister_journals_of_equal_volume("j=Lancet Neurology", "j=Lancet Oncology", Likely, Reason::TitlePage)]
#[case::editorials_of_two_volumes("t=Editorial", "v=96", Possible, Reason::TitlePage)]
#[case::short_titles("a=;t=Zinc and colds;p=;v=", "t=Zinc & Colds", Possible, Reason::Title)]
#[case::pages_without_a_letter("p=S25-S29", "p=25-9", Certain, Reason::TitlePage)]
#[case::prefaces("t=Preface;d=10.1000/a", "d=10.1000/b", Possible, Reason::TitlePage)]
#[case::prefaces_of_an_issue("t=Preface", "", Certain, Reason::TitlePage)]
fn titles_decide_together_with_position(
    #[case] both: &str,
    #[case] second: &str,
    #[case] tier: Tier,
    #[case] reason: Reason,
) {
    assert_comparison(&format!("{PLAIN};{both}"), &format!("{PLAIN};{both};{second}"), Some((tier, reason)));
}

#[rstest]
#[case::a_title_that_is_alike(
    "",
    "t=Zinc for the prevention of colds in school children;j=",
    Likely,
    Reason::PageVolumeAuthor
)]
#[case::a_translated_title("", OTHER_TITLE, Likely, Reason::PageJournalAuthor)]
#[case::the_abstract("s=colds;p=;v=", OTHER_TITLE, Likely, Reason::AbstractAuthor)]
#[case::nobody_named("a=", OTHER_TITLE, Likely, Reason::PageJournal)]
#[case::the_abstract_elsewhere(
    "s=colds",
    "t=Une etude;p=9;v=1;j=Nature;y=2006",
    Possible,
    Reason::AbstractElsewhere
)]
fn positions_decide_if_titles_differ(
    #[case] both: &str,
    #[case] second: &str,
    #[case] tier: Tier,
    #[case] reason: Reason,
) {
    assert_comparison(&format!("{PLAIN};{both}"), &format!("{PLAIN};{both};{second}"), Some((tier, reason)));
}

#[rstest]
#[case::pmids("", "m=17000002", Reason::OtherPmid)]
#[case::a_notice(
    "m=;p=",
    "t=Erratum: Oral zinc for the prevention of common colds in school children",
    Reason::Notice
)]
#[case::a_reply(
    "m=",
    "t=Reply: Oral zinc for the prevention of common colds in school children",
    Reason::Reply
)]
#[case::numbers(
    "m=;p=;d=;t=Oral zinc for the prevention of common colds in school children 1",
    "t=Oral zinc for the prevention of common colds in school children 2",
    Reason::Numbers
)]
#[case::versions("m=;d=10.1002/14651858.cd001.pub2;p=", "d=10.1002/14651858.cd001.pub3", Reason::Versions)]
fn contradictions_leave_a_possible_match(#[case] both: &str, #[case] second: &str, #[case] reason: Reason) {
    let other = format!("{FULL};{both};{second}");
    assert_comparison(&format!("{FULL};{both}"), &other, Some((Possible, reason)));
    assert_comparison(
        &format!("{FULL};{both}"),
        &format!("{other};a=Smith, J;t=Something else;d=10.1000/b;s=;p=7"),
        None,
    );
}

#[rstest]
#[case::numbers_at_the_same_place(
    "t=Zinc for colds in school children, part 1",
    "t=Zinc for colds in school children, part I"
)]
#[case::an_erratum_at_the_articles_place(
    "t=Oral zinc for the prevention of common colds in school children: correction",
    ""
)]
fn same_position_in_print_overrides_title(#[case] first: &str, #[case] second: &str) {
    assert_comparison(
        &format!("{PLAIN};{first}"),
        &format!("{PLAIN};{first};{second}"),
        Some((Certain, Reason::TitlePage)),
    );
}

#[rstest]
#[case::nothing_in_common("t=A;a=B;y=2001", "t=C;a=D;y=2001")]
#[case::words_of_their_own(
    "t=Zinc uptake of intestinal cells in vivo;y=2001;a=B",
    "t=Zinc uptake of intestinal cells in vitro;y=2001;a=B"
)]
#[case::opposites(
    "t=The effect of zinc on the duration of common colds in older men with diabetes;y=2001;a=B;j=C",
    "t=The effect of zinc on the duration of common colds in older women with diabetes;y=2001;a=B;j=C"
)]
#[case::editorials_of_two_years("t=Editorial;j=Lancet;y=2001", "t=Editorial;j=Lancet;y=2002")]
#[case::untitled_ones("a=Smith, J;y=2001", "a=Smith, J;y=2001")]
fn weak_evidence_is_no_match(#[case] one: &str, #[case] other: &str) {
    assert_comparison(one, other, None);
}

#[rstest]
#[case::abbreviated("Journal of Clinical Investigation", "J Clin Invest", true)]
#[case::contracted("Deutsche Medizinische Wochenschrift", "Dtsch Med Wschr", true)]
#[case::initials("British Medical Journal", "BMJ", true)]
#[case::translated("Praxis = Revue suisse de medecine", "Praxis", true)]
#[case::others("Lancet", "Nature", false)]
fn abbreviated_journals_agree(#[case] one: &str, #[case] other: &str, #[case] agree: bool) {
    let said = |journal: &str| format!("{PLAIN};p=;v=;i=;j={journal}");
    let tier =
        |one: &str, other: &str| compare(&record(&said(one)), &record(&said(other))).map(|(tier, _)| tier);
    let expected = if agree { Certain } else { Possible };
    assert_eq!((tier(one, other), tier(other, one)), (Some(expected), Some(expected)));
    // The same ISSN means the same journal, regardless of its name.
    let issn = |journal: &str| record(&format!("{};n=0140-6736", said(journal)));
    assert_eq!(compare(&issn(one), &issn(other)).map(|(tier, _)| tier), Some(Certain));
}

#[rstest]
#[case::initials("Kurugol Z", "Kurugol, Zafer")]
#[case::a_slip("Kurugol, Z", "Kurugul, Z")]
#[case::a_double_name("Kurugol-Akilli, Z", "Kurugol, Z")]
#[case::in_another_order("Akilli, M+Kurugol, Z", "Kurugol, Z+Akilli, M")]
fn authors_agree_in_any_notation(#[case] one: &str, #[case] other: &str) {
    let said = |authors: &str| format!("{PLAIN};p=;v=;i=;j=;a={authors}");
    assert_comparison(&said(one), &said(other), Some((Likely, Reason::TitleYearAuthor)));
    assert_comparison(&said(one), &said("Smith, J"), None);
}
