//! Determines the mark of each member of a group.

use std::collections::BTreeMap;

use super::{
    model::{Mark, ReviewerDecision, Verdict},
    nodes::{Link, Nodes},
};
use crate::reason::{Reason, Tier};

/// The data from which marks are derived.
#[derive(Debug)]
pub(super) struct Marking<'a> {
    nodes: &'a Nodes<'a>,
    verdicts: BTreeMap<(usize, usize), Verdict>,
    /// The root of each node among the certain groups, and among the likely ones.
    surely: Vec<usize>,
    likely: Vec<usize>,
    /// The member to keep in each group.
    first_surely: BTreeMap<usize, usize>,
    first_likely: BTreeMap<usize, usize>,
    /// The reason of each link, the strongest reason of each node within its certain group, and the strongest reason of
    /// each certain group for its links to others.
    direct: BTreeMap<(usize, usize), Reason>,
    within: BTreeMap<usize, Reason>,
    beyond: BTreeMap<usize, Reason>,
    /// The first member that is possibly the same as the members of a node.
    possibly: BTreeMap<usize, (usize, Reason)>,
}

impl<'a> Marking<'a> {
    pub(super) fn new(
        nodes: &'a Nodes<'a>,
        links: &[Link],
        decisions: &[ReviewerDecision],
        surely: Vec<usize>,
        likely: Vec<usize>,
    ) -> Self {
        let both_ways = |decision: &ReviewerDecision| {
            let ReviewerDecision { pair: (one, other), verdict } = *decision;
            [((one, other), verdict), ((other, one), verdict)]
        };
        let verdicts = decisions.iter().flat_map(both_ways).collect();
        let first_of = |roots: &[usize]| {
            let mut first: BTreeMap<usize, usize> = BTreeMap::new();
            for member in 0..nodes.members.len() {
                let known = first.entry(roots[nodes.of[member]]).or_insert(member);
                *known = nodes.first([*known, member].into_iter()).unwrap_or(member);
            }
            first
        };
        let (first_surely, first_likely) = (first_of(&surely), first_of(&likely));
        let mut marking = Self {
            nodes,
            verdicts,
            first_surely,
            first_likely,
            direct: BTreeMap::new(),
            within: BTreeMap::new(),
            beyond: BTreeMap::new(),
            possibly: BTreeMap::new(),
            surely,
            likely,
        };
        links.iter().for_each(|link| marking.note(link));
        marking
    }

    fn note(&mut self, link: &Link) {
        let Link { nodes: (one, other), reason, tier, .. } = *link;
        for (node, neighbour) in [(one, other), (other, one)] {
            if self.likely[node] != self.likely[neighbour] {
                self.note_possible(node, neighbour, reason, tier);
                continue;
            }
            self.direct.entry((node, neighbour)).or_insert(reason);
            if self.surely[node] == self.surely[neighbour] {
                self.within.entry(node).or_insert(reason);
            } else {
                self.beyond.entry(self.surely[node]).or_insert(reason);
            }
        }
    }

    /// Certain or likely links between two groups connect records that are kept apart, so they are ignored.
    fn note_possible(&mut self, node: usize, neighbour: usize, reason: Reason, tier: Tier) {
        if tier != Tier::Possible {
            return;
        }
        if let Some(first) = self.nodes.all[neighbour].members.first() {
            let known = self.possibly.entry(node).or_insert((*first, reason));
            *known = (*known).min((*first, reason));
        }
    }

    pub(super) fn marks(&self) -> Vec<Option<Mark>> {
        (0..self.nodes.members.len()).map(|member| self.mark(member)).collect()
    }

    fn mark(&self, member: usize) -> Option<Mark> {
        let node = self.nodes.of[member];
        let is_certain = self.nodes.all[node].members.len() == 1
            || self.nodes.all[node].copies.is_some_and(|(tier, _)| tier == Tier::Certain);
        let surely = self.first_surely.get(&self.surely[node]).copied().filter(|_| is_certain);
        if let Some(of) = surely.filter(|first| *first != member) {
            let reason = self.reason(member, of, self.within.get(&node));
            return Some(Mark { of, tier: Tier::Certain, reason });
        }
        let likely = self.first_likely.get(&self.likely[node]).copied();
        if let Some(of) = likely.filter(|first| *first != member) {
            let reason = self.reason(member, of, self.beyond.get(&self.surely[node]));
            return Some(Mark { of, tier: Tier::Likely, reason });
        }
        let (of, reason) = self.possibly.get(&node).copied()?;
        let is_earlier = self.nodes.rank(of) < self.nodes.rank(member);
        let is_denied = self.verdicts.get(&(member, of)) == Some(&Verdict::Different);
        (is_earlier && !is_denied).then_some(Mark { of, tier: Tier::Possible, reason })
    }

    /// Returns the values that two members share, or else the reason why the member joined the group. If neither
    /// exists, a reviewer's decision joined them.
    fn reason(&self, member: usize, of: usize, brought: Option<&Reason>) -> Reason {
        if self.verdicts.get(&(member, of)) == Some(&Verdict::Same) {
            return Reason::Said;
        }
        let (node, other) = (self.nodes.of[member], self.nodes.of[of]);
        let copies = self.nodes.all[node].copies.map(|(_, reason)| reason).filter(|_| node == other);
        let direct = self.direct.get(&(node, other)).copied();
        copies.or(direct).or(brought.copied()).unwrap_or(Reason::Said)
    }
}
