//! The members that may belong to one group, and the decisions that can change groups.

use std::collections::BTreeMap;

use super::model::{Edge, Member, ReviewerDecision, Verdict};
use crate::{
    fields::{Content, Fields},
    reason::Tier,
    table::compare,
};

/// Returns the decisions that can change a group: decisions that join records, and decisions that separate records that
/// one group could contain.
///
/// A worker that marks a group reads no other groups. This worker does not see that a reviewer separated a member of
/// the group from an unrelated record, so such a decision must not change the group.
pub(super) fn effective(
    members: &[Member],
    contents: &BTreeMap<Content, Fields>,
    edges: &[Edge],
    decisions: &[ReviewerDecision],
) -> Vec<ReviewerDecision> {
    if decisions.iter().all(|decision| decision.verdict == Verdict::Same) {
        return decisions.to_vec();
    }
    let mut connected = DisjointSets { parent: (0..members.len()).collect() };
    let mut of: BTreeMap<Content, Vec<usize>> = BTreeMap::new();
    for (place, member) in members.iter().enumerate() {
        of.entry(member.content).or_default().push(place);
    }
    for (content, copies) in &mut of {
        let tier = contents.get(content).and_then(|fields| compare(fields, fields)).map(|(tier, _)| tier);
        if tier > Some(Tier::Possible) {
            connected.join_all(copies.iter());
            // The first copy represents the others.
            copies.truncate(1);
        }
    }
    for Edge { pair: (one, other), tier, .. } in edges {
        if let (true, Some(one), Some(other)) = (*tier > Tier::Possible, of.get(one), of.get(other)) {
            connected.join_all(one.iter().chain(other));
        }
    }
    for ReviewerDecision { pair: (one, other), verdict } in decisions {
        if *verdict == Verdict::Same {
            connected.join_all([one, other]);
        }
    }
    let mut is_effective = |decision: &ReviewerDecision| {
        let (one, other) = decision.pair;
        decision.verdict == Verdict::Same || connected.root(one) == connected.root(other)
    };
    decisions.iter().copied().filter(|decision| is_effective(decision)).collect()
}

/// Disjoint sets of members.
struct DisjointSets {
    parent: Vec<usize>,
}

impl DisjointSets {
    fn root(&mut self, mut member: usize) -> usize {
        while self.parent[member] != member {
            self.parent[member] = self.parent[self.parent[member]];
            member = self.parent[member];
        }
        member
    }

    fn join_all<'a>(&mut self, members: impl IntoIterator<Item = &'a usize>) {
        let mut members = members.into_iter();
        let Some(first) = members.next() else { return };
        for member in members {
            let (one, other) = (self.root(*first), self.root(*member));
            self.parent[one.max(other)] = one.min(other);
        }
    }
}
