//! Groups records that describe the same work.
//!
//! Pairs that are certain or likely are joined one by one, the most certain first, unless that would join two records
//! that cannot be the same work. The order of the pairs depends on their content, not on their arrival, so the groups
//! are the same for any order of records. Reviewers' decisions take precedence over the table. The order of records
//! matters only among those with decisions: if a reviewer separates two copies, a third copy joins the earlier one.

mod marking;

use std::collections::{BTreeMap, BTreeSet};

use self::marking::Marking;
use crate::comparison::{Match, journals};
use crate::fields::{Content, Fields};
use crate::reason::{Reason, Tier};
use crate::table::compare;

/// A record that may belong to a group. Members are ordered: the earliest of a group is the one to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The fingerprint of the record's fields.
    pub content: Content,
    /// `true` if a reviewer chose to keep this record.
    pub keep: bool,
}

/// The table's result for two contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The smaller content, then the greater one.
    pub pair: (Content, Content),
    /// The certainty.
    pub tier: Tier,
    /// The matching line of the table.
    pub reason: Reason,
}

impl Edge {
    /// Compares two records. Returns `None` if they are copies of each other, or no line of the table matches.
    #[must_use]
    pub fn between(one: Content, fields: &Fields, other: Content, other_fields: &Fields) -> Option<Self> {
        let (tier, reason) = compare(fields, other_fields)?;
        let pair = (one.min(other), one.max(other));
        (pair.0 != pair.1).then_some(Self { pair, tier, reason })
    }
}

/// A reviewer's verdict on two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The records describe the same work.
    Same,
    /// The records describe different works.
    Different,
}

/// A reviewer's decision about two members, given by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReviewerDecision {
    /// The indices of the two members.
    pub pair: (usize, usize),
    /// The verdict.
    pub verdict: Verdict,
}

/// The mark of a duplicate: the record that it repeats, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The index of the member that this one repeats.
    pub of: usize,
    /// The certainty.
    pub tier: Tier,
    /// The reason: the shared values of the two members or, if both resemble a third record, the shared values of this
    /// member and that record.
    pub reason: Reason,
}

/// Returns the mark of each member, or `None` for members to keep.
///
/// Within a group that is certain, every member refers to the first one. The first one refers to the first member of
/// the group that is likely the same work. The first member is the one that a reviewer chose to keep, or else the
/// earliest. A member without a certain or likely match refers to the earliest member that is possibly the same work.
///
/// Copies of a content that is missing in `contents` are not treated as the same work.
#[must_use]
pub fn marks(
    members: &[Member],
    contents: &BTreeMap<Content, Fields>,
    edges: &[Edge],
    decisions: &[ReviewerDecision],
) -> Vec<Option<Mark>> {
    let nodes = Nodes::new(members, contents, decisions);
    let links = nodes.links(edges);
    let mut groups = Groups::new(&nodes, contents, decisions);
    groups.join_decided(decisions);
    let certain = links.iter().take_while(|link| link.tier == Tier::Certain).count();
    links[..certain].iter().for_each(|link| groups.join(link.nodes.0, link.nodes.1));
    let surely = groups.roots();
    let likely = links[certain..].iter().take_while(|link| link.tier == Tier::Likely).count();
    links[certain..certain + likely].iter().for_each(|link| groups.join(link.nodes.0, link.nodes.1));
    Marking::new(&nodes, &links, decisions, surely, groups.roots()).marks()
}

/// A member, or all copies of one record without decisions.
#[derive(Debug)]
struct Node {
    content: Content,
    members: Vec<usize>,
    /// The table's result for two of the members.
    copies: Option<(Tier, Reason)>,
}

/// The table's result for two nodes, given by their indices. Links are ordered by certainty, then by content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    surest_first: std::cmp::Reverse<Tier>,
    contents: (Content, Content),
    nodes: (usize, usize),
    tier: Tier,
    reason: Reason,
}

/// The nodes of the graph. Thousands of copies of a record form a single node, so the size of the graph depends on the
/// number of different records. Members with decisions come last: adding or removing a copy of a record does not move
/// the other nodes.
#[derive(Debug)]
struct Nodes<'a> {
    members: &'a [Member],
    all: Vec<Node>,
    /// The node of each member.
    of: Vec<usize>,
    by_content: BTreeMap<Content, Vec<usize>>,
}

impl<'a> Nodes<'a> {
    fn new(
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
                compare(fields, fields).filter(|(tier, _)| *tier > Tier::Possible)
            });
            let is_alone = copies.is_none() || decided.contains(&place);
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
    fn links(&self, edges: &[Edge]) -> Vec<Link> {
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
            for (at, one) in nodes.iter().enumerate() {
                for other in &nodes[at + 1..] {
                    link((*one, *other), (*content, *content), tier, reason);
                }
            }
        }
        links.sort_unstable();
        links
    }

    /// The rank of a member among the candidates to keep.
    fn rank(&self, member: usize) -> (bool, usize) {
        (!self.members[member].keep, member)
    }

    fn first(&self, of: impl Iterator<Item = usize>) -> Option<usize> {
        of.min_by_key(|member| self.rank(*member))
    }
}

/// The groups of nodes that are joined so far.
#[derive(Debug)]
struct Groups<'a> {
    nodes: &'a Nodes<'a>,
    contents: &'a BTreeMap<Content, Fields>,
    root: Vec<usize>,
    /// The nodes of each root.
    joined: Vec<Vec<usize>>,
    /// Pairs of roots that must not be joined, in both directions. A pair that is kept apart also keeps the unions of
    /// its groups apart.
    apart: Vec<BTreeSet<usize>>,
    /// Pairs of contents that a reviewer marked as the same work, whatever the table says.
    reconciled: BTreeSet<(Content, Content)>,
}

impl<'a> Groups<'a> {
    fn new(
        nodes: &'a Nodes<'a>,
        contents: &'a BTreeMap<Content, Fields>,
        decisions: &[ReviewerDecision],
    ) -> Self {
        let count = nodes.all.len();
        let mut apart = vec![BTreeSet::new(); count];
        let mut reconciled = BTreeSet::new();
        for ReviewerDecision { pair: (one, other), verdict } in decisions {
            let (one, other) = (nodes.of[*one], nodes.of[*other]);
            match verdict {
                Verdict::Different => {
                    apart[one].insert(other);
                    apart[other].insert(one);
                }
                Verdict::Same => {
                    let (one, other) = (nodes.all[one].content, nodes.all[other].content);
                    reconciled.extend([(one, other), (other, one)]);
                }
            }
        }
        let joined = (0..count).map(|node| vec![node]).collect();
        Self { nodes, contents, root: (0..count).collect(), joined, apart, reconciled }
    }

    /// Joins the pairs that reviewers marked as the same work, unless that would join a pair marked as different.
    fn join_decided(&mut self, decisions: &[ReviewerDecision]) {
        let mut same: Vec<_> =
            decisions.iter().filter(|decision| decision.verdict == Verdict::Same).collect();
        same.sort_unstable();
        for ReviewerDecision { pair: (one, other), .. } in same {
            let (one, other) = (self.root[self.nodes.of[*one]], self.root[self.nodes.of[*other]]);
            if one != other && !self.apart[one].contains(&other) {
                self.unite(one, other);
            }
        }
    }

    /// Joins the groups of two nodes, unless they must be kept apart.
    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root[one], self.root[other]);
        if one == other || self.apart[one].contains(&other) {
            return;
        }
        if self.are_in_conflict(one, other) {
            self.apart[one].insert(other);
            self.apart[other].insert(one);
        } else {
            self.unite(one, other);
        }
    }

    fn are_in_conflict(&self, one: usize, other: usize) -> bool {
        let content = |node: &usize| self.nodes.all[*node].content;
        self.joined[one].iter().map(content).any(|one| {
            self.joined[other].iter().map(content).any(|other| {
                let both = self.contents.get(&one).zip(self.contents.get(&other));
                both.is_some_and(|(one, other)| conflict(one, other))
                    && !self.reconciled.contains(&(one, other))
            })
        })
    }

    fn unite(&mut self, one: usize, other: usize) {
        let (into, from) = (one.min(other), one.max(other));
        for node in std::mem::take(&mut self.joined[from]) {
            self.root[node] = into;
            self.joined[into].push(node);
        }
        for stranger in std::mem::take(&mut self.apart[from]) {
            self.apart[stranger].remove(&from);
            self.apart[stranger].insert(into);
            self.apart[into].insert(stranger);
        }
    }

    fn roots(&self) -> Vec<usize> {
        self.root.clone()
    }
}

/// Returns `true` if two records must not be joined, even through a chain of others.
fn conflict(a: &Fields, b: &Fields) -> bool {
    let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
    differ(a.pmid(), b.pmid())
        || a.is_notice() != b.is_notice()
        || differ(a.page(), b.page()) && journals(a, b) == Match::Differ
}
