//! Properties of arbitrary records.

use std::collections::BTreeMap;

use duplicates::{
    Content, Edge, Fields, Mark, Member, Reason, ReviewerDecision, Tier, Verdict, compare, marks,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::records::record;

/// Generates records from a few values per field, so that they often agree.
fn any_record() -> impl Strategy<Value = String> {
    let one_of = |values: &'static [&'static str]| select(values);
    let titles = one_of(&[
        "",
        "Editorial",
        "Oral zinc for the prevention of common colds in children",
        "Oral zinc for the prevention of common cold in children: a trial",
        "Oral zinc for the prevention of common colds in children, part 2",
        "Reply: oral zinc for the prevention of common colds in children",
        "Erratum: oral zinc for the prevention of common colds in children",
        "Une etude de la vitamine chez les nourrissons de Lyon",
    ]);
    let authors = one_of(&["", "Kurugol, Z", "Kurugol Z+Akilli, M", "Smith, J", "Li, H"]);
    let places = one_of(&[
        "",
        "y=2006",
        "y=2007;j=Acta Paediatrica",
        "y=2006;j=Acta Paediatr;v=95;i=10;p=1175-81",
        "y=2006;j=Acta Paediatrica;v=95;p=1175",
        "y=2006;j=Lancet;v=95;p=1175",
        "y=2006;j=Acta Paediatrica;v=95;p=1157",
    ]);
    let ids =
        one_of(&["", "d=10.1000/a", "d=10.1000/b", "m=1", "m=2", "d=10.1000/a;m=1", "d=10.1000/c.pub2"]);
    let summaries = one_of(&["", "s=colds", "s=vitamins"]);
    (titles, authors, places, ids, summaries)
        .prop_map(|(t, a, place, ids, s)| format!("t={t};a={a};{place};{ids};{s}"))
}

/// A project: its studies, and the table's results for those that share a key.
struct Project {
    members: Vec<Member>,
    contents: BTreeMap<Content, Fields>,
    edges: Vec<Edge>,
}

impl Project {
    fn of(records: &[String]) -> Self {
        let fields: Vec<Fields> = records.iter().map(|said| record(said)).collect();
        let contents: BTreeMap<_, _> =
            fields.iter().map(|fields| (fields.content(), fields.clone())).collect();
        let mut edges = Vec::new();
        for one in &contents {
            for other in contents.range(one.0..) {
                edges.extend(Edge::between(*one.0, one.1, *other.0, other.1));
            }
        }
        let members = fields.iter().map(|fields| Member { content: fields.content(), keep: false }).collect();
        Self { members, contents, edges }
    }

    /// A number for each member, which is equal for members that may belong to one group: those connected by certain or
    /// likely matches, or by decisions that they are the same work.
    fn related(&self, said: &[ReviewerDecision]) -> Vec<usize> {
        let mut related: Vec<usize> = (0..self.members.len()).collect();
        let content = |member: usize| self.members[member].content;
        let matches = |one: usize, other: usize| {
            let pair = (content(one).min(content(other)), content(one).max(content(other)));
            let is_match = |edge: &Edge| edge.pair == pair && edge.tier > Tier::Possible;
            let itself = &self.contents[&content(one)];
            let is_copy =
                pair.0 == pair.1 && compare(itself, itself).is_some_and(|(tier, _)| tier > Tier::Possible);
            is_copy || self.edges.iter().any(is_match)
        };
        for one in 0..self.members.len() {
            for other in 0..one {
                let is_same = said.contains(&ReviewerDecision { pair: (other, one), verdict: Verdict::Same });
                if is_same || matches(one, other) {
                    let (from, into) = (related[one], related[other]);
                    related.iter_mut().filter(|group| **group == from).for_each(|group| *group = into);
                }
            }
        }
        related
    }

    /// The groups, each represented by its first member.
    fn groups(&self, said: &[ReviewerDecision]) -> Vec<usize> {
        let marks = marks(&self.members, &self.contents, &self.edges, said);
        let grouped = |member: usize| marks[member].filter(|mark| mark.tier > Tier::Possible);
        let first = |mut member: usize| {
            while let Some(mark) = grouped(member) {
                member = mark.of;
            }
            member
        };
        (0..self.members.len()).map(first).collect()
    }
}

/// Decisions about `count` members. Contradictory verdicts on a pair are resolved when they are stored, so each pair
/// has only one.
fn decisions_of(verdicts: &[(usize, usize, bool)], count: usize) -> Vec<ReviewerDecision> {
    let verdict = |(one, other, same): &(usize, usize, bool)| ReviewerDecision {
        pair: (one % count, other % count),
        verdict: if *same { Verdict::Same } else { Verdict::Different },
    };
    let said = verdicts.iter().map(verdict).filter(|said| said.pair.0 < said.pair.1);
    said.map(|said| (said.pair, said)).collect::<BTreeMap<_, _>>().into_values().collect()
}

/// A permutation of `count` indices that preserves the order of members with decisions.
fn shuffled(count: usize, said: &[ReviewerDecision], seed: u64) -> Vec<usize> {
    let is_spoken_of = |place: &usize| said.iter().any(|said| said.pair.0 == *place || said.pair.1 == *place);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|place| (*place as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
    let mut spoken_of = (0..count).filter(is_spoken_of);
    let moved = |place| if is_spoken_of(&place) { spoken_of.next() } else { Some(place) };
    order.into_iter().filter_map(moved).collect()
}

proptest! {
    #[test]
    fn comparison_is_symmetric(one in any_record(), other in any_record()) {
        let (one, other) = (record(&one), record(&other));
        prop_assert_eq!(compare(&one, &other), compare(&other, &one));
    }

    /// Copies of a record that matches another one match each other with at least the same certainty.
    #[test]
    fn copies_match_as_surely_as_others(one in any_record(), other in any_record()) {
        let (one, other) = (record(&one), record(&other));
        if let Some((tier, _)) = compare(&one, &other).filter(|(tier, _)| *tier > Tier::Possible) {
            let itself = compare(&one, &one).map(|(tier, _)| tier);
            prop_assert!(itself >= Some(tier), "{:?}", itself);
        }
    }

    /// Lookup by key finds all pairs that would be grouped. A pair without a shared key is only possible, or has a DOI
    /// that its journal also assigned to others.
    #[test]
    fn certain_matches_share_a_key(one in any_record(), other in any_record()) {
        let (one, other) = (record(&one), record(&other));
        if let Some((Tier::Certain, reason)) = compare(&one, &other) {
            let shares = one.keys().iter().any(|key| other.keys().contains(key));
            prop_assert!(shares, "{}", reason);
        }
    }

    #[test]
    fn copies_have_equal_content_and_keys(said in any_record()) {
        let (one, copy) = (record(&said), record(&said.to_uppercase().replace("T=", "t=").replace("A=", "a=")
            .replace("Y=", "y=").replace("J=", "j=").replace("V=", "v=").replace("I=", "i=").replace("P=", "p=")
            .replace("D=", "d=").replace("M=", "m=").replace("S=", "s=")));
        prop_assert_eq!(one.content(), copy.content());
        prop_assert_eq!(one.keys(), copy.keys());
    }

    /// The groups have the same members for any order of records, pairs and decisions. Only members with decisions keep
    /// their order. If a reviewer separates two copies, a third copy joins the earlier copy. If two `same` verdicts
    /// contradict a `different` verdict, the verdict on the earlier records applies.
    #[test]
    fn groups_are_independent_of_order(
        different in prop::collection::vec(any_record(), 1..9),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 2..14),
        verdicts in prop::collection::vec((0_usize..14, 0_usize..14, any::<bool>()), 0..6),
        seed in any::<u64>(),
    ) {
        let records: Vec<String> = chosen.iter().map(|chosen| chosen.get(&different).clone()).collect();
        let count = records.len();
        let said = decisions_of(&verdicts, count);
        let groups = Project::of(&records).groups(&said);
        let order = shuffled(count, &said, seed);
        let mut moved_records = Project::of(&order.iter().map(|place| records[*place].clone()).collect::<Vec<_>>());
        moved_records.edges.reverse();
        let moved = |place: usize| order.iter().position(|from| *from == place).unwrap();
        let mut said_of_moved: Vec<ReviewerDecision> =
            said.iter().map(|said| ReviewerDecision { pair: (moved(said.pair.0), moved(said.pair.1)), ..*said }).collect();
        said_of_moved.reverse();
        let others = moved_records.groups(&said_of_moved);
        for one in 0..count {
            for other in 0..one {
                let together = groups[one] == groups[other];
                prop_assert_eq!(others[moved(one)] == others[moved(other)], together, "{} and {}", one, other);
            }
        }
    }

    /// A worker marks a group without reading the decisions between its members and studies of other groups. Therefore,
    /// such a decision changes no mark, except a possible mark that names the other record of the pair.
    #[test]
    fn decisions_across_groups_change_no_mark(
        different in prop::collection::vec(any_record(), 1..6),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 6..14),
        verdicts in prop::collection::vec((0_usize..14, 0_usize..14, any::<bool>()), 0..4),
        unrelated in prop::collection::vec((0_usize..14, 0_usize..14), 1..8),
    ) {
        let records: Vec<String> = chosen.iter().map(|chosen| chosen.get(&different).clone()).collect();
        let project = Project::of(&records);
        let told = decisions_of(&verdicts, records.len());
        let groups = project.related(&told);
        let different = unrelated.into_iter().map(|(one, other)| (one, other, false)).collect::<Vec<_>>();
        let mut unrelated = decisions_of(&different, records.len());
        unrelated.retain(|said| groups[said.pair.0] != groups[said.pair.1]);
        let all: Vec<ReviewerDecision> = [told.clone(), unrelated.clone()].concat();
        let before = marks(&project.members, &project.contents, &project.edges, &told);
        let after = marks(&project.members, &project.contents, &project.edges, &all);
        let is_denied = |member: usize, mark: Mark| {
            let pair = (member.min(mark.of), member.max(mark.of));
            mark.tier == Tier::Possible && unrelated.iter().any(|said| said.pair == pair)
        };
        for (member, (before, after)) in before.into_iter().zip(after).enumerate() {
            let expected = before.filter(|mark| !is_denied(member, *mark));
            prop_assert_eq!(after, expected, "member {} of {:?}, unrelated decisions: {:?}", member, records, unrelated);
        }
    }

    /// A mark leads to the member to keep, the earliest of its group, and gives a reason.
    #[test]
    fn marks_lead_to_the_earliest_record(records in prop::collection::vec(any_record(), 2..14)) {
        let project = Project::of(&records);
        let groups = project.groups(&[]);
        for (member, mark) in marks(&project.members, &project.contents, &project.edges, &[]).into_iter().enumerate() {
            prop_assert!(groups[member] <= member);
            let Some(mark) = mark else { continue };
            prop_assert!(mark.of < member);
            prop_assert!(mark.reason != Reason::Said);
        }
    }
}
