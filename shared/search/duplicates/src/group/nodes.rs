//! The graph of records: copies of a record share a node, and links carry the table's results.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Edge, Member, ReviewerDecision};
use crate::{
    fields::{Content, Fields},
    reason::{Reason, Tier},
    table::compare,
};

/// A member with decisions, or all copies of one record without decisions.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) members: Vec<usize>,
    /// The table's result for two copies of the content.
    pub(super) copies: Option<(Tier, Reason)>,
}

/// The table's result for two nodes, given by their indices. Links are ordered by certainty, then by content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) surest_first: std::cmp::Reverse<Tier>,
    pub(super) contents: (Content, Content),
    pub(super) nodes: (usize, usize),
    pub(super) tier: Tier,
    pub(super) reason: Reason,
}

/// The nodes of the graph. Thousands of copies of a record form a single node, so the size of the graph depends on the
/// number of different records. Members with decisions come last: adding or removing a copy of a record does not move
/// the other nodes.
#[derive(Debug)]
pub(super) struct Nodes<'a> {
    pub(super) members: &'a [Member],
    pub(super) all: Vec<Node>,
    /// The node of each member.
    pub(super) of: Vec<usize>,
    pub(super) by_content: BTreeMap<Content, Vec<usize>>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(
        members: &'a [Member],
        contents: &BTreeMap<Content, Fields>,
        decisions: &[ReviewerDecision],
    ) -> Self {
        let decided: BTreeSet<usize> =
            decisions.iter().flat_map(|decision| [decision.pair.0, decision.pair.1]).collect();
        let mut copies = BTreeMap::new();
        let of = vec![0; members.len()];
        let mut nodes = Self { members, all: Vec::new(), of, by_content: BTreeMap::new() };
        let mut together: BTreeMap<Content, usize> = BTreeMap::new();
        let mut in_order: Vec<usize> = (0..members.len()).collect();
        in_order.sort_by_key(|place| decided.contains(place));
        for place in in_order {
            let Member { content, .. } = &members[place];
            let copies = *copies.entry(*content).or_insert_with(|| {
                let fields = contents.get(content)?;
                compare(fields, fields)
            });
            let is_possible = copies.is_none_or(|(tier, _)| tier == Tier::Possible);
            let is_alone = is_possible || decided.contains(&place);
            let known = together.get(content).copied().filter(|_| !is_alone);
            let node = known.unwrap_or_else(|| {
                nodes.all.push(Node { content: *content, members: Vec::new(), copies });
                let node = nodes.all.len() - 1;
                nodes.by_content.entry(*content).or_default().push(node);
                node
            });
            if !is_alone {
                together.insert(*content, node);
            }
            nodes.all[node].members.push(place);
            nodes.of[place] = node;
        }
        nodes
    }

    /// Returns the links between nodes, including those between nodes with the same content, the most certain first.
    pub(super) fn links(&self, edges: &[Edge]) -> Vec<Link> {
        let mut links = Vec::new();
        let mut link = |nodes: (usize, usize), contents, tier, reason| {
            links.push(Link { surest_first: std::cmp::Reverse(tier), contents, nodes, tier, reason });
        };
        let nodes_of = |content| self.by_content.get(content).map_or(&[][..], Vec::as_slice);
        for Edge { pair, tier, reason } in edges {
            for one in nodes_of(&pair.0) {
                for other in nodes_of(&pair.1) {
                    link((*one, *other), *pair, *tier, *reason);
                }
            }
        }
        for (content, nodes) in &self.by_content {
            let Some((tier, reason)) = self.all[nodes[0]].copies else { continue };
            let content = (*content, *content);
            if tier == Tier::Possible {
                // Possible copies refer to the earliest one. A decision about it moves its node to the end, but does
                // not change the marks of the others.
                let earliest = nodes.iter().copied().min_by_key(|node| self.all[*node].members.first());
                let Some(earliest) = earliest else { continue };
                for other in nodes.iter().filter(|node| **node != earliest) {
                    link((earliest, *other), content, tier, reason);
                }
                continue;
            }
            for (at, one) in nodes.iter().enumerate() {
                for other in &nodes[at + 1..] {
                    link((*one, *other), content, tier, reason);
                }
            }
        }
        links.sort_unstable();
        links
    }

    /// The rank of a member among the candidates to keep.
    pub(super) fn rank(&self, member: usize) -> (bool, usize) {
        (!self.members[member].keep, member)
    }

    pub(super) fn first(&self, of: impl Iterator<Item = usize>) -> Option<usize> {
        of.min_by_key(|member| self.rank(*member))
    }
}
