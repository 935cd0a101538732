//! Groups of records, and reviewers' decisions.

use std::collections::BTreeMap;

use duplicates::{Content, Edge, Fields, Mark, Member, Reason, ReviewerDecision, Tier, Verdict, marks};

use crate::records::record;

const ZINC: &str = "t=Oral zinc for the prevention of common colds in children;a=Kurugol, Z";

/// Returns the marks of records, given decisions about some of them.
fn marked(
    records: &[&str],
    said: &[(usize, usize, Verdict)],
    keep: &[usize],
) -> Vec<Option<(usize, Tier, Reason)>> {
    let fields: Vec<Fields> = records.iter().map(|said| record(said)).collect();
    let contents: BTreeMap<Content, Fields> =
        fields.iter().map(|fields| (fields.content(), fields.clone())).collect();
    let mut edges = Vec::new();
    for one in &contents {
        edges.extend(contents.iter().filter_map(|other| {
            let shares = one.1.keys().iter().any(|key| other.1.keys().contains(key));
            Edge::between(*one.0, one.1, *other.0, other.1).filter(|_| shares && one.0 < other.0)
        }));
    }
    let members: Vec<Member> = fields
        .iter()
        .enumerate()
        .map(|(place, fields)| Member { content: fields.content(), keep: keep.contains(&place) })
        .collect();
    let said: Vec<ReviewerDecision> = said
        .iter()
        .map(|(one, other, verdict)| ReviewerDecision { pair: (*one, *other), verdict: *verdict })
        .collect();
    let told = |mark: Mark| (mark.of, mark.tier, mark.reason);
    marks(&members, &contents, &edges, &said).into_iter().map(|mark| mark.map(told)).collect()
}

fn zinc(what: &str) -> String {
    format!("{ZINC};{what}")
}

#[test]
fn mark_points_to_first_certain_then_first_likely() {
    let (one, other) = (zinc("y=2006"), zinc("y=2006;j=Acta Paediatrica;v=95;p=1175"));
    let found = marked(&[&one, &other, &other], &[], &[]);
    let surely = Some((1, Tier::Certain, Reason::TitlePage));
    assert_eq!(found, [None, Some((0, Tier::Likely, Reason::TitleYearAuthor)), surely]);
}

#[test]
fn copies_with_few_fields_are_possible() {
    let possible = Some((0, Tier::Possible, Reason::Title));
    assert_eq!(marked(&["t=Editorial"; 3], &[], &[]), [None, possible, possible]);
    let likely = Some((0, Tier::Likely, Reason::TitleYearAuthor));
    assert_eq!(marked(&[&zinc("y=2006"); 3].map(|said| &**said), &[], &[]), [None, likely, likely]);
}

/// Copies still refer to a record about which a reviewer has decided.
#[test]
fn possible_copies_refer_to_first_despite_decisions() {
    let records = ["t=Editorial", "t=Editorial", "t=Editorial", "t=Something else"];
    let possible = Some((0, Tier::Possible, Reason::Title));
    let expected = [None, possible, possible, None];
    let different = Verdict::Different;
    assert_eq!(marked(&records, &[], &[]), expected);
    assert_eq!(marked(&records, &[(0, 3, different)], &[]), expected);
    assert_eq!(marked(&records, &[(0, 3, different), (1, 3, different)], &[]), expected);
}

/// The copies belong to the group through the second record, and the last record is unrelated. The DOIs vary the order
/// of the contents, and therefore the order of the links.
#[test]
fn unrelated_decisions_keep_reason_of_copies() {
    let place = "y=2006;j=Acta Paediatrica;v=95;i=10;p=1175";
    let between = format!("a=Kurugol, Z;{place};m=2");
    for number in 0..8 {
        let copy = format!("a=Kurugol, Z+Akilli, M;{place};d=10.1000/a{number}");
        let records = ["a=Smith, J;m=2", &between, &copy, &copy, "d=10.1000/b"];
        let expected = marked(&records, &[], &[]);
        assert_eq!(expected[2], Some((0, Tier::Likely, Reason::PageJournalAuthor)));
        assert_eq!(expected[3], expected[2]);
        for decided in [2, 3] {
            let said = [(decided, 4, Verdict::Different)];
            assert_eq!(marked(&records, &said, &[]), expected, "{number} {decided}");
        }
    }
}

/// The second record resembles both others, which have different PubMed identifiers.
#[test]
fn conflicting_records_are_never_joined_by_a_third() {
    let place = "y=2006;j=Acta Paediatrica;v=95;p=1175";
    let [one, between, other] = ["m=1", "", "m=2"].map(|id| zinc(&format!("{place};{id}")));
    let found = marked(&[&one, &between, &other], &[], &[]);
    let marks: Vec<_> = found.iter().map(|mark| mark.map(|(of, tier, _)| (of, tier))).collect();
    let joined = [Some((0, Tier::Certain)), Some((1, Tier::Certain))];
    assert_eq!(marks[0], None);
    // The contents determine which of the two it joins.
    assert!(joined.contains(&marks[1]) || joined.contains(&marks[2]), "{marks:?}");
    assert_ne!((marks[1], marks[2]), (joined[0], joined[1]));
    assert!(found[2].is_some_and(|(_, tier, _)| tier == Tier::Possible) || found[1].is_none(), "{found:?}");
}

/// The third record has neither a place nor an identifier, and resembles both others.
#[test]
fn other_editions_are_never_joined_by_a_third() {
    let review =
        "t=Zinc for the common cold in children;a=Higgins, J;j=Cochrane Database Syst Rev;p=CD001364";
    for (both, one, other) in [
        (review, "y=2016;d=10.1002/1.CD001364.pub4", "y=2019;d=10.1002/1.CD001364.pub5"),
        (ZINC, "y=2018;j=Blood;p=S44-S45;d=10.1000/a", "y=2018;j=Blood;p=500-501;d=10.1000/b"),
        (ZINC, "y=2018;j=Blood;v=1;p=A44", "y=2018;j=Blood;v=1;p=500-510"),
    ] {
        let records = [format!("{both};{one}"), format!("{both};{other}"), both.to_owned()];
        let found = marked(&records.each_ref().map(String::as_str), &[], &[]);
        let grouped = found.iter().flatten().filter(|(_, tier, _)| *tier > Tier::Possible).count();
        assert!(grouped <= 1, "{found:?}");
    }
}

#[test]
fn same_doi_joins_abstract_and_article() {
    let [one, other] =
        ["j=Blood. Conference: ASH", "j=Blood;p=500-510"].map(|place| zinc(&format!("{place};d=10.1000/a")));
    assert_eq!(marked(&[&one, &other], &[], &[]), [None, Some((0, Tier::Certain, Reason::DoiTitle))]);
    let [one, other] =
        ["p=S25-S29;d=10.1000/a", "p=25-9;d=10.1000/b"].map(|place| zinc(&format!("y=2006;{place}")));
    assert_eq!(marked(&[&one, &other], &[], &[]), [None, Some((0, Tier::Likely, Reason::TitlePage))]);
}

#[test]
fn retracted_article_is_grouped_without_notice() {
    let place = zinc("y=2006;j=Acta Paediatrica;v=95;i=10;p=1175");
    let [retracted, notice] = ["RETRACTED", "Retraction"]
        .map(|label| format!("{place};t={label}: Oral zinc for the prevention of common colds in children"));
    let surely = Some((0, Tier::Certain, Reason::TitlePage));
    assert_eq!(marked(&[&place, &retracted], &[], &[]), [None, surely]);
    assert_eq!(marked(&[&place, &notice], &[], &[]), [None, None]);
}

#[test]
fn possible_matches_are_marked_but_not_grouped() {
    let found = marked(&[&zinc("y=1990"), &zinc("y=2006")], &[], &[]);
    assert_eq!(found, [None, Some((0, Tier::Possible, Reason::Title))]);
}

#[test]
fn decisions_override_the_table() {
    let (same, different) = (Verdict::Same, Verdict::Different);
    let copies = [
        zinc("y=2006;j=Acta Paediatrica"),
        zinc("y=2006;j=Acta Paediatrica"),
        zinc("y=2006;j=Acta Paediatrica"),
    ];
    let copies = [&*copies[0], &*copies[1], &*copies[2]];
    let surely = |of| Some((of, Tier::Certain, Reason::TitleYearAuthor));
    assert_eq!(marked(&copies, &[], &[]), [None, surely(0), surely(0)]);
    // The third record resembles both records and joins the earlier one.
    assert_eq!(marked(&copies, &[(0, 1, different)], &[]), [None, None, surely(0)]);
    assert_eq!(marked(&copies, &[(0, 1, different), (0, 2, different), (1, 2, different)], &[]), [None; 3]);
    // Even if the records contradict the decision.
    let others = [&*zinc("m=1"), "t=Something else;m=2"];
    let said = Some((0, Tier::Certain, Reason::Said));
    assert_eq!(marked(&others, &[(0, 1, same)], &[]), [None, said]);
    // Copies of the two records join them.
    let with_copies = [others[0], others[1], others[0], others[1]];
    let marks = marked(&with_copies, &[(0, 1, same)], &[]);
    assert_eq!(
        marks.iter().map(|mark| mark.map(|(of, tier, _)| (of, tier))).collect::<Vec<_>>(),
        [None, Some((0, Tier::Certain)), Some((0, Tier::Certain)), Some((0, Tier::Certain)),]
    );
}

#[test]
fn same_decisions_never_join_different_ones() {
    let records = ["t=A;m=1", "t=B;m=2", "t=C;m=3"];
    let said = [(0, 1, Verdict::Same), (1, 2, Verdict::Same), (0, 2, Verdict::Different)];
    let found = marked(&records, &said, &[]);
    assert_eq!(found, [None, Some((0, Tier::Certain, Reason::Said)), None]);
}

/// A copy of the first record without decisions, placed after all others or before them.
#[test]
fn position_of_a_copy_does_not_change_groups() {
    let like_first = "t=Oral zinc in children: a trial;a=Kurugol Z;y=2006;m=1;s=vitamins";
    let first = "t=Editorial;a=Kurugol, Z;y=2006;d=10.1000/a;m=1;s=colds";
    let told_apart = "t=Editorial;a=;d=10.1000/a;s=colds";
    let groups = |found: &[Option<(usize, Tier, Reason)>], places: [usize; 4]| {
        let kept = |mut place: usize| {
            while let Some((of, tier, _)) = found[place]
                && tier > Tier::Possible
            {
                place = of;
            }
            place
        };
        let kept = places.map(kept);
        [kept[0] == kept[1], kept[0] == kept[2], kept[1] == kept[2], kept[0] == kept[3], kept[2] == kept[3]]
    };
    let different = Verdict::Different;
    let behind = marked(&[first, told_apart, like_first, first], &[(0, 1, different)], &[]);
    let before = marked(&[first, first, told_apart, like_first], &[(1, 2, different)], &[]);
    assert_eq!(groups(&behind, [0, 1, 2, 3]), groups(&before, [1, 2, 3, 0]));
}

#[test]
fn chosen_record_is_kept() {
    let copy = zinc("y=2006;j=Acta Paediatrica");
    let surely = Some((2, Tier::Certain, Reason::TitleYearAuthor));
    assert_eq!(marked(&[&copy, &copy, &copy], &[], &[2]), [surely, surely, None]);
}

/// Thousands of copies form one node.
#[test]
fn many_copies_form_one_node() {
    let copy = zinc("y=2006;j=Acta Paediatrica");
    let copies: Vec<&str> = std::iter::repeat_n(&*copy, 20_000).collect();
    assert_eq!(marked(&copies, &[], &[]).into_iter().flatten().count(), 19_999);
}
