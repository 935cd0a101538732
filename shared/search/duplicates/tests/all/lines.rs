//! Every line of the table, and every condition of it.

use duplicates::{Reason, Tier, compare};
use rstest::rstest;

use crate::records::record;

use Tier::{Certain, Likely, Possible};

/// A complete record, from which the others differ.
const FULL: &str = "t=Oral zinc for the prevention of common colds in school children; a=Kurugol, Z+Akilli, M; y=2006; \
    j=Acta Paediatrica; v=95; i=10; p=1175-1181; d=10.1000/zinc.2006; m=17000001; s=colds are common";
/// The record above without identifiers.
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

/// Compares two records that differ from the plain one in the fields `both`, and from each other in those of `second`.
#[track_caller]
fn assert_plain(both: &str, second: &str, expected: Option<(Tier, Reason)>) {
    assert_comparison(&format!("{PLAIN};{both}"), &format!("{PLAIN};{both};{second}"), expected);
}

/// The changes to both records, the changes to the second record, and the expected result.
#[rstest]
#[case::itself("", "", Certain, Reason::Pmid)]
#[case::pmid_and_title("d=", "a=;y=1999;p=1;v=1", Certain, Reason::Pmid)]
#[case::pmid_and_author("d=", "t=Something else altogether about vitamins", Certain, Reason::Pmid)]
#[case::pmid_title_elsewhere("d=", "j=Ophthalmology Letters;v=7;p=1-9", Certain, Reason::Pmid)]
#[case::pmid_author_elsewhere(
    "d=",
    "t=Something else altogether about vitamins;j=Ophthalmology Letters;y=2011;v=7;p=1-9",
    Possible,
    Reason::PmidAlone
)]
#[case::pmid_alone(
    "d=",
    "t=Something else altogether about vitamins;a=Smith, J",
    Possible,
    Reason::PmidAlone
)]
#[case::registration(
    "d=;m=;j=;v=;p=;a=Vitamin Group;x=NCT00000001",
    "t=Une etude de la vitamine;a=University of Zinc",
    Certain,
    Reason::Number
)]
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
#[case::two_years_apart("p=", "y=2008", Likely, Reason::TitleAuthor)]
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
#[case::another_first_author("", "a=Smith, J", Possible, Reason::Title)]
#[case::a_group_of_authors("", "a=Example Study Group", Certain, Reason::TitlePage)]
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
    assert_plain(both, second, Some((tier, reason)));
}

#[rstest]
#[case::issue("p=1-2", "i=11", Reason::TitlePage)]
#[case::issue_without_pages("p=", "i=11", Reason::Title)]
#[case::issue_of_editorials("t=Editorial;p=1-2", "i=11;p=1-3", Reason::TitlePage)]
#[case::issue_and_nearby_page("", "i=11;p=1178", Reason::Title)]
#[case::issue_without_author("p=", "a=;i=11", Reason::Title)]
#[case::issue_in_the_next_year("p=", "i=11;y=2007", Reason::Title)]
#[case::volume_and_year("p=1-2", "v=96;y=2007", Reason::TitlePage)]
#[case::year_alone("v=;i=;p=", "y=2007", Reason::Title)]
#[case::year_without_author("v=;p=", "a=;y=2007", Reason::Title)]
#[case::version_of_a_review("v=;p=CD001364", "i=2;y=2007", Reason::TitlePage)]
#[case::conference(
    "j=Diabetologia. Conference: 45th EASD;i=S1;p=",
    "j=Diabetologia;i=2;p=200",
    Reason::Title
)]
#[case::sister_journal("p=e1-e10", "p=e1-e60;j=Stroke;v=54", Reason::TitlePage)]
#[case::preprint("v=;i=;p=;j=Preprints.org", "j=", Reason::Title)]
#[case::preprint_by_doi("v=;i=;p=;j=;d=10.21203/rs.3.rs-1/v1", "d=", Reason::Title)]
#[case::preprint_with_abstract("v=;i=;p=;s=colds;j=medRxiv", "j=", Reason::Title)]
fn title_in_another_edition_is_possible(#[case] both: &str, #[case] second: &str, #[case] reason: Reason) {
    let expected = Some((Possible, reason));
    assert_plain(both, second, expected);
}

#[rstest]
#[case::large_page("", "i=11", Likely, Reason::TitlePage)]
#[case::large_issue_number("i=640;p=29-32", "i=641", Certain, Reason::TitlePage)]
#[case::supplement_instead_of_volume("i=;p=S52", "v=1", Likely, Reason::TitlePage)]
#[case::online_first("", "y=2007;v=;i=;p=", Likely, Reason::TitleAuthor)]
#[case::preprint_in_two_databases("v=;i=;p=;j=medRxiv", "", Certain, Reason::TitleYearAuthor)]
fn title_without_evidence_of_another_edition_matches(
    #[case] both: &str,
    #[case] second: &str,
    #[case] tier: Tier,
    #[case] reason: Reason,
) {
    assert_plain(both, second, Some((tier, reason)));
}

#[rstest]
#[case::abstract_page("p=A295", OTHER_TITLE, Some((Possible, Reason::PageJournalAuthor)))]
#[case::one_page("p=295-295", OTHER_TITLE, Some((Possible, Reason::PageJournalAuthor)))]
#[case::other_abstract(
    "p=295;s=colds",
    "s=vitamins;t=Une etude de la vitamine",
    Some((Possible, Reason::PageJournalAuthor))
)]
#[case::similar_title(
    "p=A295",
    "t=Oral zinc for the treatment of common colds in old men",
    Some((Possible, Reason::PageJournalAuthor))
)]
#[case::parts(
    "p=A295;t=Zinc for colds in children: part 1",
    "t=Zinc for colds in children: part 2",
    Some((Possible, Reason::Numbers))
)]
#[case::doi_of_a_supplement(
    "p=A295;d=10.1000/a;s=colds",
    "s=vitamins;t=Une etude de la vitamine",
    Some((Possible, Reason::Doi))
)]
#[case::nobody_named("a=;p=295-295", OTHER_TITLE, None)]
#[case::same_abstract("p=A295;s=colds", OTHER_TITLE, Some((Likely, Reason::PageVolumeAuthor)))]
#[case::range_of_pages("p=S25-S29", OTHER_TITLE, Some((Likely, Reason::PageJournalAuthor)))]
#[case::number_of_an_article("p=e43268", OTHER_TITLE, Some((Likely, Reason::PageJournalAuthor)))]
fn abstracts_on_one_page_are_possible(
    #[case] both: &str,
    #[case] second: &str,
    #[case] expected: Option<(Tier, Reason)>,
) {
    assert_plain(both, second, expected);
}

#[test]
fn series_titles_of_different_issues_never_match() {
    let one = format!("{PLAIN};p=1-2;t=Highlights of March for clinicians");
    assert_comparison(&one, &format!("{one};i=11;t=Highlights of the April issue"), None);
}

/// Titles without spaces between words.
#[rstest]
#[case::chinese(
    "t=锌治疗儿童感冒的随机对照试验",
    "j=Chinese Journal of Pediatrics",
    Some((Likely, Reason::TitlePage))
)]
#[case::chinese_online_first(
    "t=锌治疗儿童感冒的随机对照试验",
    "y=2007;v=;i=;p=",
    Some((Likely, Reason::TitleAuthor))
)]
#[case::ten_ideographs("t=锌治疗儿童感冒的效果", "j=Nature", Some((Likely, Reason::TitlePage)))]
#[case::japanese("t=小児のかぜに対する亜鉛の効果", "j=Nature", Some((Likely, Reason::TitlePage)))]
#[case::korean("t=소아감기에대한아연의효과", "j=Nature", Some((Likely, Reason::TitlePage)))]
#[case::subtitle(
    "t=锌治疗儿童感冒的随机对照试验",
    "t=锌治疗儿童感冒的随机对照试验：多中心研究",
    Some((Certain, Reason::TitlePage))
)]
#[case::short_title("t=编者按", "j=Nature", Some((Possible, Reason::TitlePage)))]
#[case::loanword("t=インフルエンザワクチン", "j=Nature", Some((Possible, Reason::TitlePage)))]
#[case::other_ideograph(
    "p=;t=干扰素治疗慢性乙型肝炎的随机对照试验",
    "t=干扰素治疗慢性丙型肝炎的随机对照试验",
    None
)]
#[case::phase(
    "p=A295;t=锌治疗儿童感冒的II期临床试验",
    "t=锌治疗儿童感冒的III期临床试验",
    Some((Possible, Reason::Numbers))
)]
fn title_length_counts_ideographs(
    #[case] both: &str,
    #[case] second: &str,
    #[case] expected: Option<(Tier, Reason)>,
) {
    assert_plain(both, second, expected);
}

#[rstest]
#[case::label("RETRACTED: ", "", "", Certain, Reason::TitleYearAuthor)]
#[case::label_of_an_article("RETRACTED ARTICLE: ", "", "", Certain, Reason::TitleYearAuthor)]
#[case::withdrawn("WITHDRAWN: ", "", "", Certain, Reason::TitleYearAuthor)]
#[case::bracket("[Retracted] ", "", "", Certain, Reason::TitleYearAuthor)]
#[case::suffix("", " (Retracted article. See vol. 12, pg. 3, 2010)", "", Certain, Reason::TitleYearAuthor)]
#[case::retraction("Retraction: ", "", "s=colds", Possible, Reason::Notice)]
#[case::notice("Retraction notice to ", "", "s=colds", Possible, Reason::Notice)]
#[case::retraction_as_suffix("", ": Retraction", "", Possible, Reason::Notice)]
fn retracted_article_matches_but_its_notice_does_not(
    #[case] prefix: &str,
    #[case] suffix: &str,
    #[case] both: &str,
    #[case] tier: Tier,
    #[case] reason: Reason,
) {
    let title = "Oral zinc for the prevention of common colds in school children";
    let article = format!("{PLAIN};p=;{both}");
    assert_comparison(&article, &format!("{article};t={prefix}{title}{suffix}"), Some((tier, reason)));
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
    assert_plain(both, second, Some((tier, reason)));
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
#[case::a_response_of_an_author(
    "m=",
    "t=Oral zinc for the prevention of common colds in school children: author's response",
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
#[case::untitled_ones("a=Smith, J;y=2001", "a=Smith, J;y=2001;j=Lancet")]
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

/// Some databases write `Wei Li`, whose family name is either word, and others `Li, W`.
#[test]
fn family_name_of_natural_order_is_either_word() {
    let many = |first: &str, name: fn(char) -> String| {
        [first.to_owned()].into_iter().chain(('A'..='R').map(name)).collect::<Vec<_>>().join("+")
    };
    let [natural, inverted] = [
        many("Bo Xu", |letter| format!("Ann {letter}oe")),
        many("Doe, Jo", |letter| format!("{letter}oe, Ann")),
    ];
    for (one, other, is_same) in [
        (natural.as_str(), inverted.as_str(), true),
        ("Wei Li+Ann Smithson", "Li, Wei+Smithson, Ann", true),
        ("Wei Li", "Li W", true),
        ("Li Wei", "Li, Wei", true),
        ("Li Wei", "Wei Li", true),
        ("Maria García Márquez", "García Márquez, Maria", true),
        ("Ann Li+Wei Xu", "Xu, Wei+Li, Ann", true),
        ("Wei Li", "Wei Xu", false),
        ("Ann Roe+Wei Liu", "Doe, B+Wei, A", false),
        ("Wei Li", "Pavli, Wanda", false),
    ] {
        let [one, other] = [one, other].map(|authors| record(&format!("{PLAIN};a={authors};p=")));
        let found = compare(&one, &other);
        assert_eq!(found.is_some_and(|(tier, _)| tier == Likely || tier == Certain), is_same, "{found:?}");
    }
}
