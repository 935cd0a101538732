//! Classes of faults that reviewers found: pairs of records, and the greatest certainty that is right.

use duplicates::{Tier, compare};

use crate::records::record;

use Tier::{Certain, Likely, Possible};

/// A pair of records: the fields of both records, the fields of the first, and the fields of the second.
type Pair<'a> = (&'a str, &'a str, &'a str);

const ZINC: &str =
    "t=Oral zinc for the prevention of common colds in school children;a=Smith, J+Rossi, P;y=2014;j=Allergy";

/// Returns the certainty of a pair, which is the same in both directions.
#[track_caller]
fn tier((both, one, other): Pair<'_>) -> Option<Tier> {
    let [one, other] = [one, other].map(|second| record(&format!("{both};{second}")));
    let found = compare(&one, &other);
    assert_eq!(compare(&other, &one), found, "the other way round");
    found.map(|(tier, _)| tier)
}

/// Asserts that no pair has a higher certainty than a possible match.
#[track_caller]
fn assert_at_most_possible(pairs: &[Pair<'_>]) {
    for pair in pairs {
        let found = tier(*pair);
        assert!(found <= Some(Possible), "{found:?} for {pair:?}");
    }
}

/// Asserts the certainty of each pair, and that its records share a key.
#[track_caller]
fn assert_tiers(pairs: &[(Pair<'_>, Tier)]) {
    for (pair, expected) in pairs {
        assert_eq!(tier(*pair), Some(*expected), "{pair:?}");
        let [one, other] = [pair.1, pair.2].map(|second| record(&format!("{};{second}", pair.0)));
        assert!(one.keys().iter().any(|key| other.keys().contains(key)), "no key for {pair:?}");
    }
}

/// A database that writes titles in capitals does not show which of their words are labels.
#[test]
fn title_in_capitals_matches_its_label() {
    let [one, other] = [
        "Prevalence and risk factors of hepatitis A among haemodialysis patients",
        "PREVALENCE AND RISK FACTORS OF HEPATITIS A AMONG HAEMODIALYSIS PATIENTS",
    ];
    let pages = format!("{ZINC};v=1;p=12-19");
    let pair = (pages.as_str(), &*format!("t={one}"), &*format!("t={other}"));
    assert_tiers(&[(pair, Certain)]);
}

#[test]
fn prefix_or_modifier_separates_companion_works() {
    for (one, other) in [
        (
            "Epidemiology of burns in Iran: a hospital study",
            "Epidemiology of burns in Iraq: a hospital study",
        ),
        ("Adult height and risk of cancer in Asian women", "Adult weight and risk of cancer in Asian women"),
        (
            "Dapagliflozin in patients with heart failure: a trial",
            "Empagliflozin in patients with heart failure: a trial",
        ),
        (
            "Simvastatin in stroke: outcomes of a trial in Oslo",
            "Pravastatin in stroke: outcomes of a trial in Oslo",
        ),
        (
            "Omeprazole for bleeding ulcers of elderly patients",
            "Esomeprazole for bleeding ulcers of elderly patients",
        ),
        ("Prevalence of hyperthyroidism in pregnant women", "Prevalence of hypothyroidism in pregnant women"),
        (
            "Preoperative anaemia in surgical patients of Rome",
            "Postoperative anaemia in surgical patients of Rome",
        ),
        ("Intracellular calcium and cardiac contraction", "Extracellular calcium and cardiac contraction"),
        (
            "Care of inpatients with heart failure in Denmark",
            "Care of outpatients with heart failure in Denmark",
        ),
        (
            "Symptomatic carotid stenosis: outcomes of stents",
            "Asymptomatic carotid stenosis: outcomes of stents",
        ),
        (
            "Effects of increased sodium on pressure of rats",
            "Effects of decreased sodium on pressure of rats",
        ),
        (
            "Lung function of smokers in coal mines of Wales",
            "Lung function of ex-smokers in coal mines of Wales",
        ),
        (
            "Lung function of smokers in coal mines of Wales",
            "Lung function of non-smokers in coal mines of Wales",
        ),
        (
            "Burden of injuries in Sudan: results of a survey",
            "Burden of injuries in South Sudan: results of a survey",
        ),
        (
            "Sudan: burden of injuries and results of a survey",
            "South Sudan: burden of injuries and results of a survey",
        ),
    ] {
        for place in ["v=12", "v=12;p=12", "v=12;d=10.1/a"] {
            let pair = (&*format!("{ZINC};{place}"), &*format!("t={one}"), &*format!("t={other}"));
            assert_at_most_possible(&[pair]);
        }
    }
    for (one, other) in [
        (
            "Re-operation after hip fractures: a study of Norway",
            "Reoperation after hip fractures: study of Norway",
        ),
        (
            "In-hospital mortality of stroke in patients of Rome",
            "Inhospital mortality of stroke patients of Rome",
        ),
        (
            "Pre- and post-natal depression among women in Rome",
            "Prenatal and postnatal depression among women in Rome",
        ),
        (
            "Aciclovir and sulphamethoxazole for infections of rats",
            "Acyclovir and sulfamethoxazole for infection of rats",
        ),
        (
            "Lung function of non-smokers in coal mine of Wales",
            "Lung function of nonsmokers in coal mines of Wales",
        ),
        ("Anti-tumour effects of zinc in mice with cancers", "Antitumor effect of zinc in mice with cancers"),
        ("Aetiology of chronic cough in the adults of Wales", "Etiology of chronic cough in adult of Wales"),
        ("Post-traumatic stress disorders of veterans", "Posttraumatic stress disorder of veterans"),
    ] {
        let pair = (&*format!("{ZINC};v=12;p=123-129"), &*format!("t={one}"), &*format!("t={other}"));
        assert_tiers(&[(pair, Certain)]);
    }
}

#[test]
fn distinguishing_word_separates_companion_works() {
    let titles = |one: &str, other: &str| (format!("{ZINC};t={one}"), format!("t={other}"));
    for (one, other) in [
        titles(
            "Cost of dupilumab for atopic dermatitis of adults in the national health service of Italy",
            "Cost of dupilumab for atopic dermatitis of adults in the national health service of Spain",
        ),
        titles(
            "Prevalence of germline BRCA1 mutations in women with epithelial ovarian cancer",
            "Prevalence of germline BRCA2 mutations in women with epithelial ovarian cancer",
        ),
        titles(
            "Prevalence and risk factors of HBV infection among haemodialysis patients",
            "Prevalence and risk factors of HCV infection among haemodialysis patients",
        ),
        titles(
            "Prevalence and risk factors of hepatitis A among haemodialysis patients",
            "Prevalence and risk factors of hepatitis B among haemodialysis patients",
        ),
        titles(
            "Work disability of patients with AS in outpatient clinics of the national health service",
            "Work disability of patients with RA in outpatient clinics of the national health service",
        ),
        titles(
            "Prevalence and risk factors of hepatitis B among haemodialysis patients",
            "Prevalence and risk factors of hepatitis C among haemodialysis patients",
        ),
        titles(
            "A phase IIa trial of oral zinc for the prevention of common colds in children",
            "A phase IIb trial of oral zinc for the prevention of common colds in children",
        ),
        titles(
            "Oral zinc for the prevention of common colds in school children. Part XI",
            "Oral zinc for the prevention of common colds in school children. Part XII",
        ),
        titles(
            "Quality of life and physical function before total hip arthroplasty",
            "Quality of life and physical function after total hip arthroplasty",
        ),
        titles(
            "Long term outcome of coronary intervention in patients with diabetes mellitus",
            "Long term outcome of coronary intervention in patients without diabetes mellitus",
        ),
    ] {
        for place in ["", "v=20;i=9;p=A495", "v=20;i=9;p=A495;d=10.1000/a", "v=20;i=9;p=201-204"] {
            let next = if place.ends_with("204") { ";p=205-208" } else { "" };
            assert_at_most_possible(&[(&one, place, &format!("{place};{other}{next}"))]);
        }
    }
    // Spellings of a word, and the same number in another notation.
    assert_tiers(&[
        (
            (
                ZINC,
                "t=Zinc after tumour surgery in school children",
                "t=Zinc after tumor surgery in school children",
            ),
            Certain,
        ),
        (
            (
                ZINC,
                "t=A 5-HT3 receptor antagonist in school children",
                "t=A 5-HT(3) receptor antagonist in school children",
            ),
            Certain,
        ),
        (
            (
                ZINC,
                "t=Zinc for colds in school children: a phase IIb trial",
                "t=Zinc for colds in school children: a phase 2b trial",
            ),
            Likely,
        ),
    ]);
}

/// Without pages, only keys of the title find these pairs.
#[test]
fn numbers_in_words_equal_those_in_digits() {
    let both = "a=Smith, J;y=2014;j=Blood";
    for (one, other, tier) in [
        ("Comparison of two doses of zinc in children", "Comparison of 2 doses of zinc in children", Certain),
        (
            "One-year follow-up of zinc in school children",
            "1-year follow-up of zinc in school children",
            Certain,
        ),
        ("Fifteen years of zinc in school children", "15 years of zinc in school children", Certain),
        ("Twenty-four hours of zinc in school children", "24 hours of zinc in school children", Certain),
        ("The first trial of zinc in school children", "The 1st trial of zinc in school children", Certain),
        ("One hundred cases of zinc in school children", "100 cases of zinc in school children", Certain),
        (
            "One-year effects of zinc on tumour growth in children",
            "1-year effects of zinc on tumor growth in children",
            Certain,
        ),
        ("Zinc in twelve adults", "Zinc in 12 adults", Likely),
        ("Two cases of zinc", "2 cases of zinc", Likely),
    ] {
        let [first, second] = [one, other].map(|title| format!("t={title}"));
        assert_tiers(&[((both, &first, &second), tier), ((both, &second, &first), tier)]);
    }
    assert_at_most_possible(&[
        (
            both,
            "t=Comparison of two doses of zinc in children",
            "t=Comparison of 3 doses of zinc in children",
        ),
        (both, "t=Fifteen years of zinc in children", "t=Fifty years of zinc in children"),
        (both, "t=Twenty-four hours of zinc in children", "t=20 hours of zinc in children"),
    ]);
}

#[test]
fn supplement_abstracts_sharing_doi_are_not_grouped() {
    let both = "a=Smith, J;y=2017;j=Diabetologia;v=60;d=10.1000/supplement";
    let one = "t=Glucagon secretion in adolescents after bariatric surgery";
    let other = "t=Glucagon response in adults after kidney transplantation";
    let unrelated = "t=Incretin response to mixed meals in pregnancy";
    for place in ["p=S123", "p=123", "", "s=colds"] {
        for other in [other, unrelated] {
            assert_at_most_possible(&[(&format!("{both};{place}"), one, other)]);
        }
    }
    let [first, second] =
        ["I", "II"].map(|phase| format!("t=Phase {phase} study of abemaciclib in patients with tumours"));
    assert_at_most_possible(&[(both, &first, &second)]);
    // The numbers of an omitted subtitle.
    let article = format!("{ZINC};d=10.1000/a");
    let subtitle =
        "t=Oral zinc for the prevention of common colds in school children: results after 12 months";
    assert_tiers(&[((&article, "p=1-9", subtitle), Certain)]);
}

/// The abstracts of a supplement may have its DOI and all of its pages, and the chapters of a book those of the book.
#[test]
fn doi_and_pages_of_several_works_are_possible() {
    let both = "a=Roe, A+Doe, B;y=2018;j=Allergy Letters;v=12;d=10.1000/supplement";
    let title =
        |subject: &str| format!("t=Benefit of inhaled selenium in joggers with {subject}: a registry");
    let one = title("seasonal sneezing");
    let unrelated = "t=Sensitivity of pollen counters in mountain villages of the north";
    for place in [
        "i=Suppl 1;p=12-13",
        "i=Suppl 1;p=12-12",
        "i=Suppl 1;p=612-613",
        "i=Suppl 1;p=117-308",
        "i=4;p=117-308",
        "i=S1;p=S1-S200",
        "i=S1;p=A12-A13",
        "i=S1;p=A12",
        "i=S1",
    ] {
        let both = format!("{both};{place}");
        assert_at_most_possible(&[
            (&both, &one, unrelated),
            (&both, &one, &title("night cough")),
            (&both, "t=Prevalence of sneezing", "t=Incidence of sneezing"),
            (&both, "t=Selenium for adults with coughs", "t=Selenium for children with coughs"),
            (&both, "t=Cost of selenium in Spain", "t=Cost of selenium in Italy"),
        ]);
    }
    let chapter = "a=Roe, A;y=2016;j=Handbook of Metals;d=10.1000/978-1-0000;k=Book Chapter";
    assert_at_most_possible(&[
        (&format!("{chapter};p=1-300"), "t=Overview of zinc", "t=Overview of copper"),
        (&format!("{chapter};p=12-13"), "t=Overview of zinc", "t=Overview of copper"),
    ]);
}

/// One article has its pages and its DOI, although databases translate its title in different ways.
#[test]
fn doi_and_pages_of_an_article_outweigh_its_title() {
    let article = format!("{ZINC};v=103;i=2;p=1175-1181;d=10.1000/article");
    let german = "t=Zink zur Vorbeugung von Erkaeltungen bei Schulkindern";
    // No word shows its language.
    let polish = "t=Zastosowanie cynku u dzieci";
    let subset = "t=Oral zinc for the prevention of colds in children";
    assert_tiers(&[
        ((&article, "", german), Certain),
        ((&article, "p=12-19", &format!("p=12-19;{german}")), Certain),
        ((&article, "", subset), Certain),
        ((&article, "", polish), Likely),
        ((&article, "p=12-19", &format!("p=12-19;i=;{polish}")), Likely),
        ((&article, "s=colds", &format!("s=Erkaeltungen;{german}")), Likely),
        ((&article, "p=12-19;s=colds", &format!("p=12-19;s=Erkaeltungen;{german}")), Likely),
        ((&article, "e=L620000001", &format!("e=L620000002;{german}")), Likely),
        ((&article, "e=L620000001", &format!("e=2011000001;{german}")), Certain),
        ((&article, "w=WOS:000000000000001", &format!("w=BCI:BCI000000000001;{german}")), Certain),
        ((&article, "e=L620000001", "e=L620000002"), Certain),
    ]);
    assert_at_most_possible(&[
        (&article, "s=colds", &format!("s=przeziebienia;{polish}")),
        (&article, "e=L620000001", &format!("e=620000002;{polish}")),
        (&article, "w=WOS:000000000000001", &format!("w=WOS:000000000000002;{polish}")),
        (&article, "c=PMC1000001", &format!("c=PMC1000002;{polish}")),
        (&article, "p=1-10", &format!("p=1-10;{polish}")),
    ]);
}

/// Some journals begin each article with page 1, and others each issue.
#[test]
fn low_pages_identify_no_article() {
    let both = "a=Roe, A+Doe, B;y=2018;j=Reports on Science;v=8";
    for place in ["i=1;p=1-10", "i=1;p=1", "p=1-10", "p=e1-e10", "p=12-19", "i=2;p=12-13", "i=2;p=12"] {
        for ids in ["", ";s=sleep", ";d=10.1000/one"] {
            let one = |title: &str| format!("t={title}{ids}");
            let both = format!("{both};{place}");
            assert_at_most_possible(&[
                (
                    &both,
                    &one("Benefit of inhaled selenium in adult joggers with seasonal sneezing"),
                    "t=Sensitivity of pollen counters in mountain villages;s=pollen",
                ),
                (
                    &both,
                    &one("Benefit of inhaled selenium in adult joggers with seasonal sneezing"),
                    "t=Benefit of inhaled selenium in adult joggers with night cough",
                ),
                (
                    &both,
                    &one("Effects of naps on memory of names in young adults"),
                    "t=Effects of naps on memory of names in older adults;s=naps",
                ),
                (&both, &one("The role of zinc"), "t=The role of copper"),
                (&format!("{both};a="), &one("The role of zinc"), "t=The role of copper"),
            ]);
        }
    }
    // Abstracts in a supplement, and works with all of its pages.
    for place in ["i=Suppl 1;p=295", "i=Suppl 1;p=295-296", "i=4;p=117-308"] {
        let one = "t=Benefit of inhaled selenium in adult joggers";
        assert_at_most_possible(&[(&format!("{both};{place}"), one, "t=Pollen in mountain villages")]);
    }
}

#[test]
fn low_pages_of_an_issue_identify_its_articles() {
    let article = format!("{ZINC};v=103;i=2");
    let german = "t=Zink zur Vorbeugung von Erkaeltungen bei Schulkindern";
    let polish = "t=Zastosowanie cynku u dzieci";
    for (place, title) in [
        ("p=12-19", german),
        ("p=12", german),
        ("p=1-8", german),
        ("i=;p=1-8", german),
        ("p=12-19", polish),
        ("p=12-19", "t=口服锌预防学龄儿童感冒的随机对照试验"),
        ("p=12-19", "t="),
        ("p=1-8", "t=Oral zinc for the prevention of colds: children"),
    ] {
        assert_tiers(&[((&format!("{article};{place}"), "", title), Likely)]);
    }
    let short = "t=Zinc in colds";
    assert_tiers(&[((&format!("{article};p=1-8;{short}"), "", &format!("{short} of children")), Likely)]);
    assert_at_most_possible(&[
        (&article, "p=1-8", &format!("p=1-8;{polish}")),
        (&article, "i=;p=12-19", &format!("i=;p=12-19;{polish}")),
        (&article, "i=;p=12", &format!("i=;p=12;{german}")),
        (&article, "p=12-19;s=colds", &format!("p=12-19;s=Erkaeltungen;{german}")),
    ]);
}

/// CENTRAL writes links as journals, and registers as authors.
#[test]
fn registrations_are_compared_by_their_numbers() {
    let both = "t=A Study of Semaglutide in Participants With Type 2 Diabetes;y=2018";
    let central = "a=Nct;j=https://clinicaltrials.gov/show/NCT03548935;d=10.1002/central/CN-01592312";
    let who = "j=http://www.who.int/trialsearch/Trial2.aspx?TrialID=";
    for (one, other) in [
        ("a=Nct;j=https://clinicaltrials.gov/show/NCT03548987".to_owned(), central.to_owned()),
        (format!("{who}ChiCTR1900021234"), format!("{who}ChiCTR1900025678")),
        (format!("{who}IRCT20190101042123N1"), format!("{who}IRCT20190101042123N2")),
    ] {
        assert_eq!(tier((both, &one, &other)), None, "{one} and {other}");
    }
    assert_tiers(&[
        ((both, central, "a=NCT03548935;j=https://clinicaltrials.gov/ct2/show/NCT03548935"), Certain),
        ((both, central, "a=Novo Nordisk;u=https://clinicaltrials.gov/study/NCT03548935"), Certain),
        ((both, central, "t=Zinc for Kids With Colds;x=NCT03548935"), Certain),
        ((both, &format!("{who}JPRN-UMIN000012345"), "x=UMIN000012345"), Certain),
        ((both, &format!("{who}EUCTR2015-001234-12-DE"), "x=2015-001234-12"), Certain),
    ]);
}

#[test]
fn identifiers_of_several_works_are_no_proof() {
    let trial = "x=NCT01234567;a=Smith, J";
    assert_at_most_possible(&[
        (
            trial,
            "t=Zinc for colds: design and rationale;j=Trials",
            "t=Five-year mortality of children;j=Lancet",
        ),
        (
            "a=Smith, J;j=J Gen Intern Med;v=32;c=PMC5688884",
            "t=Teaching bedside ultrasound to residents;p=S83",
            "t=Loneliness and hospital readmission;p=S412",
        ),
    ]);
    assert_tiers(&[((ZINC, "c=PMC5688884;y=2013", "c=PMC5688884;j=Nature"), Certain)]);
}

#[test]
fn other_kinds_of_work_are_possible() {
    let article = "v=103;i=2;p=120-128";
    for other in [
        "j=;k=Thesis/Dissertation",
        "j=;k=Data File",
        "j=;d=10.5061/dryad.1",
        "j=;k=Report",
        "j=;u=https://clinicaltrials.gov/study/NCT03548935",
        "j=;d=10.31219/osf.io/abcde",
        "j=;d=10.2196/preprints.123",
        "j=;d=10.64898/2026.01.01.1",
    ] {
        assert_at_most_possible(&[(ZINC, article, other), (&format!("{ZINC};s=colds"), article, other)]);
    }
    assert_tiers(&[((&format!("{ZINC};j=;k=Thesis/Dissertation"), "", "y=2014"), Likely)]);
}

#[test]
fn front_matter_of_two_issues_is_possible() {
    let both = "t=Editorial;a=Roe, A;y=2010;j=Journal of Nursing Practice;v=12";
    for (one, other) in [
        ("i=Spring", "i=Fall"),
        ("i=Jan-Feb", "i=Mar-Apr"),
        ("i=Suppl A", "i=Suppl B"),
        ("i=6 Pt 1", "i=6 Pt 2"),
        ("i=S1", "i=Supplement 2"),
        ("i=6A", "i=6B"),
    ] {
        let anonymous = format!("{both};a=");
        let long = format!("{both};p=1-2;t=Calendar of events and upcoming scientific meetings");
        let pairs = [format!("{both};p=1-2"), both.to_owned(), long, anonymous];
        pairs.iter().for_each(|both| assert_at_most_possible(&[(both, one, other)]));
    }
    let both = format!("{both};p=1-2");
    assert_tiers(&[((&both, "i=Spring", "i=spring"), Certain), ((&both, "i=Spring", ""), Likely)]);
}

/// Databases give months, or the number of the issue in the year.
#[test]
fn months_of_an_issue_are_its_number() {
    let both = "t=Editorial;a=Roe, A;y=2010;j=Blood;v=9;p=67-70";
    for (one, other) in [
        ("i=Jan-Feb", "i=1"),
        ("i=January/February", "i=1"),
        ("i=Mar-Apr 2010", "i=2"),
        ("i=Oct-Dec", "i=4"),
        ("i=Mar", "i=3"),
        ("i=3 (Mar)", "i=3"),
        ("i=15 Jan", "i=Jan 15"),
        ("i=Jan-Feb", "i=January-February"),
    ] {
        assert_tiers(&[((both, one, other), Certain)]);
    }
    // A volume may begin in another month, and a month may be a part of a range.
    for (one, other) in
        [("i=Jan-Feb", "i=4"), ("i=Jan-Feb", "i=Feb"), ("i=Dec-Jan", "i=Jan"), ("i=15 Jan", "i=2")]
    {
        assert_tiers(&[((both, one, other), Likely)]);
        assert_tiers(&[((&format!("{ZINC};v=9"), one, other), Certain)]);
    }
    for (one, other) in [("i=Jan-Feb", "i=Mar"), ("i=Dec-Jan", "i=Feb-Mar"), ("i=3 (Mar)", "i=4 (Apr)")] {
        assert_at_most_possible(&[(both, one, other)]);
    }
}

/// Some weekly journals have no volume, or count their issues as volumes.
#[test]
fn issues_place_works_without_a_volume() {
    let both = "t=Multiple drugs: Stevens-Johnson syndrome: case report;j=Reactions Weekly;y=2017";
    assert_at_most_possible(&[
        (both, "i=1640;p=212", "i=1651;p=212"),
        (both, "i=1640;p=21", "i=1651;p=21"),
        (both, "i=1640;p=21;d=10.1007/a", "i=1651;p=21;d=10.1007/b"),
        (both, "v=1640;i=1640;p=21", "v=1651;i=1651;p=21"),
    ]);
    assert_tiers(&[((both, "i=1640;p=21", "i=1640;p=21"), Certain)]);
}

#[test]
fn sister_journals_are_never_certain() {
    let guideline = "t=Global practice guidelines of the societies of hypertension;a=Unger, T;y=2020";
    for (one, other) in [
        ("j=Hypertension", "j=Journal of Hypertension"),
        ("j=Circulation", "j=Circulation: Heart Failure"),
        ("j=Annals of Hematology", "j=Annals of Hepatology"),
        ("j=Nature Reviews Neurology;v=9;p=67", "j=Nature Reviews Nephrology;v=9;p=67"),
        ("j=Journal of Neurology", "j=Journal of Neuroradiology"),
    ] {
        assert!(tier((guideline, one, other)) <= Some(Likely), "{one} and {other}");
        assert_at_most_possible(&[("t=In brief;y=2020;v=9;i=2;p=67;a=Roe, A", one, other)]);
    }
    for (one, other) in [("j=J Neurol", "j=Journal of Neurology"), ("j=Paediatrics", "j=Pediatrics")] {
        assert_tiers(&[((guideline, one, other), Certain)]);
    }
    // No two journals have a work on the same pages of the same volume.
    let place = format!("{guideline};v=9;p=67-89");
    assert_tiers(&[((&place, "j=Hypertension", "j=Hypertension Research"), Certain)]);
}

/// Short titles count only in one journal, whose name databases abbreviate.
#[test]
fn journal_of_a_short_title_has_a_full_and_an_abbreviated_name() {
    let both = "t=Zinc and colds;a=Smith, J;y=2014;v=9;i=2;p=67-70";
    for (one, other) in [
        ("J Clin Invest", "Journal of Clinical Investigation"),
        (
            "Proc Natl Acad Sci U S A",
            "Proceedings of the National Academy of Sciences of the United States of America",
        ),
        (
            "Proc. Natl. Acad. Sci. USA",
            "Proceedings of the National Academy of Sciences of the United States of America",
        ),
        ("Z Gastroenterol", "Zeitschrift für Gastroenterologie"),
        ("Rev Assoc Med Bras", "Revista da Associação Médica Brasileira"),
        ("Ned Tijdschr Geneeskd", "Nederlands tijdschrift voor geneeskunde"),
        ("Rev Epidemiol Sante Publique", "Revue d'épidémiologie et de santé publique"),
        ("Encephale", "L'Encéphale"),
        ("AJR Am J Roentgenol", "American Journal of Roentgenology"),
        ("AJR Am J Roentgenol", "AJR. American journal of roentgenology"),
        ("JPEN J Parenter Enteral Nutr", "Journal of Parenteral and Enteral Nutrition"),
        ("BJOG", "BJOG: An International Journal of Obstetrics and Gynaecology"),
        ("Clin Infect Dis Off Publ Infect Dis Soc Am", "Clinical Infectious Diseases"),
        ("Thorax: The Journal of the British Thoracic Society", "Thorax"),
        ("Lancet Lond Engl", "Lancet (London, England)"),
    ] {
        assert_tiers(&[((both, &format!("j={one}"), &format!("j={other}")), Certain)]);
    }
    for (one, other) in [
        ("Circulation", "Circulation: Heart Failure"),
        ("Hypertension", "J Hypertens"),
        ("Ann Intern Med", "Annals of Internal Medicine Clinical Cases"),
        ("Lancet", "Lancet Oncol"),
        ("J Am Coll Cardiol", "Journal of the American College of Cardiology Case Reports"),
        ("Am J Med", "American Journal of Medical Genetics"),
    ] {
        assert_at_most_possible(&[(both, &format!("j={one}"), &format!("j={other}"))]);
    }
}

#[test]
fn abstract_of_a_meeting_is_no_article() {
    let article = "j=Blood;v=132;i=5;p=500-510";
    for other in [
        "j=Blood. Conference: 60th Annual Meeting",
        "j=Blood;k=Conference Proceeding",
        "j=Blood;v=132;i=Supplement 1",
        "j=Blood;v=132;i=5 SUPPL. 1;p=S44-S45",
        "j=Blood;v=132;p=A44",
    ] {
        assert_at_most_possible(&[(ZINC, article, other)]);
        // Without pages, the article may be the abstract.
        assert!(tier((ZINC, "j=Blood;v=132", other)) >= Some(Likely), "{other}");
    }
}

/// Scopus and Embase give the type to articles of a journal's proceedings.
#[test]
fn paper_of_a_conference_without_pages_may_be_the_article() {
    let article = "j=Blood;v=132;i=5;p=500-510";
    for kind in ["Conference Paper", "conference paper", "Conference Article"] {
        let paper = format!("j=Blood;v=132;k={kind}");
        assert_tiers(&[((ZINC, article, &paper), Certain)]);
        assert_at_most_possible(&[(ZINC, article, &format!("{paper};p=20-28"))]);
    }
    for kind in ["Conference Abstract", "Meeting Abstract", "Conference Proceeding"] {
        assert_at_most_possible(&[(ZINC, article, &format!("j=Blood;v=132;k={kind}"))]);
    }
}

#[test]
fn versions_of_a_review_are_possible() {
    let review =
        "t=Zinc for the common cold in children;a=Higgins, J;p=CD001364;j=Cochrane Database Syst Rev";
    assert_at_most_possible(&[
        (review, "v=4;i=4;y=2015", "v=4;i=4;y=2018"),
        (review, "v=1;y=2016", "v=1;y=2019;d=10.1002/14651858.CD001364.pub5"),
    ]);
    assert_tiers(&[((review, "v=4;i=4;y=2015", "y=2015"), Certain)]);
}

#[test]
fn label_of_one_title_is_another_work() {
    for label in [
        ": study protocol for a randomised trial",
        ": design and rationale",
        ": executive summary",
        ". Reply",
        " REPLY",
    ] {
        let other = format!("t=Oral zinc for the prevention of common colds in school children{label}");
        assert_at_most_possible(&[(ZINC, "", &other), (&format!("{ZINC};v=3;i=2"), "p=121", &other)]);
    }
    let other = "t=Oral zinc for the prevention of common colds in school children: study protocol";
    let place = format!("{ZINC};v=3;p=121-130");
    assert_tiers(&[((&place, "", other), Certain), ((&format!("{ZINC};m=1"), "", other), Certain)]);
}

#[test]
fn beginnings_of_abstracts_need_similar_titles() {
    let both = "a=Smith, J;y=2017;j=J Am Acad Dermatol;s=psoriasis";
    let one = "t=Secukinumab improves quality of life in psoriasis";
    let other = "t=Cardiovascular safety of biologics: pooled data";
    assert_at_most_possible(&[(both, one, other), (&format!("{both};v=76;p=AB12"), one, other)]);
    let translated = "t=Le secukinumab et la qualite de vie dans le psoriasis";
    assert_tiers(&[((both, one, translated), Likely), ((both, one, "t="), Likely)]);
}

#[test]
fn identical_records_are_at_least_possible() {
    for both in [
        "a=Smith, J;y=2014;j=Allergy",
        "a=Smith, J;y=2014;j=Allergy;t=?",
        "a=Smith, J;y=2014;j=Allergy;v=3;i=2",
        "a=Smith, J;y=2014",
        "y=2001;s=colds",
    ] {
        assert_tiers(&[((both, "", ""), Possible)]);
    }
    assert_tiers(&[(("a=Smith, J;y=2014;j=Allergy;t=The And", "", ""), Likely)]);
    assert_eq!(tier(("y=2014", "", "")), None);
    assert!(record("y=2014").keys().is_empty());
}

#[test]
fn records_with_one_doi_are_compared() {
    let both = "d=10.1000/a;y=2014";
    let article = "t=Oral zinc for the prevention of colds;a=Zhang, W;j=Chinese Journal of Pediatrics";
    assert_tiers(&[
        ((both, "", article), Likely),
        ((both, "t=口服锌预防学龄儿童感冒的随机对照试验;a=张伟", article), Likely),
        ((both, "t=Цинк для профилактики простуды у детей;a=Иванов, И", article), Likely),
        ((both, "t=Orales Zink zur Vorbeugung von Erkaeltungen", article), Possible),
    ]);
}

#[test]
fn same_pmid_outweighs_words_of_titles() {
    let zinc = "Oral zinc for the prevention of common colds in school children";
    let with = |title: String| format!("t={title}");
    for other in [
        with(format!("{zinc}: results after 12 months")),
        with(format!("{zinc}: a correction")),
        with(format!("Letter to the editor: {zinc}")),
    ] {
        assert_tiers(&[((&format!("{ZINC};m=1"), "", &other), Certain)]);
        assert!(tier((&format!("{ZINC};m=1"), "p=1", &format!("{other};p=9"))) <= Some(Possible));
    }
    assert_tiers(&[
        ((ZINC, "", &with(format!("{zinc}: strategies for withdrawal"))), Certain),
        (
            (
                ZINC,
                "t=Vitamin B-12 for the common cold in children",
                "t=Vitamin B12 for the common colds in children",
            ),
            Certain,
        ),
    ]);
}

#[test]
fn notation_is_no_difference() {
    let place = format!("{ZINC};v=103;i=2;p=120-128");
    assert_tiers(&[
        ((ZINC, "d=10.1002/central/CN-00981234", "d=10.1111/apa.12345"), Certain),
        ((ZINC, "v=2014;p=123456", "v=2014;p=1-9"), Certain),
        ((ZINC, "v=2014;p=Article ID 123456", "v=2014;p=123456"), Certain),
        ((ZINC, "v=9;p=e43268", "v=9;p=1-10"), Certain),
        ((ZINC, "v=9;p=S3-S11;i=Suppl", "v=9;p=3-11"), Certain),
        ((ZINC, "v=9;p=3S-11S", "v=9;p=S3-S11"), Certain),
        ((ZINC, "a=Böhm, K", "a=Boehm, K"), Certain),
        ((&place, "a=Zhang, Wei+Li, Na", "a=Wei, Zhang+Na, Li"), Certain),
        ((&place, "a=UK Prospective Diabetes Study (UKPDS) Group", "a=Turner, RC"), Certain),
        (
            (
                ZINC,
                "",
                "t=Oral zinc for the prevention of common colds in school children [version 1, 2 approved]",
            ),
            Certain,
        ),
        ((&format!("{ZINC};t=Zinc for colds;d=10.1000/a"), "p=1-8", "p=120-128"), Likely),
    ]);
    assert_at_most_possible(&[
        (ZINC, "v=9;p=S3", "v=9;p=3"),
        (&format!("{place};p="), "a=UK Prospective Diabetes Study (UKPDS) Group", "a=Turner, RC"),
        (&format!("{ZINC};t=Editorial;d=10.1000/a"), "p=1-8", "p=120-128"),
    ]);
}
