//! Which records are one work.
//!
//! Pairs that are certain or likely are joined one by one, the surest first, unless that brought two records together that
//! cannot be the same. Which pairs come first depends on what the records say, not on when they came, so the groups are the
//! same whatever the order. What people have said comes before all of that. Only among records that they have spoken of does
//! the order count: where somebody tells two copies apart, a third one goes to the earlier.

mod marking;

use std::collections::{BTreeMap, BTreeSet};

use self::marking::Marking;
use crate::alike::{Match, journals};
use crate::fields::{Content, Fields};
use crate::reason::{Reason, Tier};
use crate::table::compare;

/// A record that may be one of a group. Members are in their order: of a group, the earliest is the one to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// What it says.
    pub content: Content,
    /// Whether somebody has said that it is the one to keep.
    pub keep: bool,
}

/// What the table says of two contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The lesser content, then the greater one.
    pub pair: (Content, Content),
    /// How sure it is.
    pub tier: Tier,
    /// The line of the table.
    pub reason: Reason,
}

impl Edge {
    /// Between two records, if the table says anything of them, and they are not copies of each other.
    #[must_use]
    pub fn between(a: (Content, &Fields), b: (Content, &Fields)) -> Option<Self> {
        let (tier, reason) = compare(a.1, b.1)?;
        let pair = (a.0.min(b.0), a.0.max(b.0));
        (pair.0 != pair.1).then_some(Self { pair, tier, reason })
    }
}

/// What somebody has said of two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// They are the same work.
    Same,
    /// They are not.
    Different,
}

/// What somebody has said of two members, which are given by their places among the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// The two.
    pub pair: (usize, usize),
    /// What was said.
    pub verdict: Verdict,
}

/// What a member is marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The member that it repeats, by its place among the members.
    pub of: usize,
    /// How sure that is.
    pub tier: Tier,
    /// Why: what the two have in common or, where each is alike a third one, what this one and that one have.
    pub reason: Reason,
}

/// What each member is marked with; none for those to keep.
///
/// A member names the first of those that are certainly the same as it. The first of those names the first of those that
/// are likely the same. The first is the one that somebody said to keep, or the earliest. One that is like none of these names
/// the earliest that is possibly the same.
///
/// Of a content without fields, copies are not known to be the same.
#[must_use]
pub fn marks(
    members: &[Member],
    contents: &BTreeMap<Content, Fields>,
    edges: &[Edge],
    said: &[Said],
) -> Vec<Option<Mark>> {
    let nodes = Nodes::new(members, contents, said);
    let links = nodes.links(edges);
    let mut groups = Groups::new(&nodes, contents, said);
    groups.join_said(said);
    let certain = links.iter().take_while(|link| link.tier == Tier::Certain).count();
    links[..certain].iter().for_each(|link| groups.join(link.nodes));
    let surely = groups.roots();
    let likely = links[certain..].iter().take_while(|link| link.tier == Tier::Likely).count();
    links[certain..certain + likely].iter().for_each(|link| groups.join(link.nodes));
    Marking::new(&nodes, &links, said, surely, groups.roots()).marks()
}

/// A member, or all copies of one record that nobody has said anything of.
#[derive(Debug)]
struct Node {
    content: Content,
    members: Vec<usize>,
    /// What the table says of two of its members.
    copies: Option<(Tier, Reason)>,
}

/// What the table says of two nodes, by their places. Ordered by how sure it is, and then by what the records say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    surest_first: std::cmp::Reverse<Tier>,
    contents: (Content, Content),
    nodes: (usize, usize),
    tier: Tier,
    reason: Reason,
}

/// Records that come in thousands of copies are one node, so that a graph is as large as what is different in it. Those that
/// somebody has spoken of come behind all others: when one of a record's copies comes or goes, the others stay where they are.
#[derive(Debug)]
struct Nodes<'a> {
    members: &'a [Member],
    all: Vec<Node>,
    /// Of each member.
    of: Vec<usize>,
    by_content: BTreeMap<Content, Vec<usize>>,
}

impl<'a> Nodes<'a> {
    fn new(members: &'a [Member], contents: &BTreeMap<Content, Fields>, said: &[Said]) -> Self {
        let spoken_of: BTreeSet<usize> = said.iter().flat_map(|said| [said.pair.0, said.pair.1]).collect();
        let mut copies = BTreeMap::new();
        let of = vec![0; members.len()];
        let mut nodes = Self { members, all: Vec::new(), of, by_content: BTreeMap::new() };
        let mut together: BTreeMap<Content, usize> = BTreeMap::new();
        let mut in_order: Vec<usize> = (0..members.len()).collect();
        in_order.sort_by_key(|place| spoken_of.contains(place));
        for place in in_order {
            let Member { content, .. } = &members[place];
            let copies = *copies.entry(*content).or_insert_with(|| {
                let fields = contents.get(content)?;
                compare(fields, fields).filter(|(tier, _)| *tier > Tier::Possible)
            });
            let is_alone = copies.is_none() || spoken_of.contains(&place);
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

    /// The edges between nodes, and those between copies of one record that are nodes of their own; the surest first.
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

    /// The place of a member among those that could be kept.
    fn rank(&self, member: usize) -> (bool, usize) {
        (!self.members[member].keep, member)
    }

    fn first(&self, of: impl Iterator<Item = usize>) -> Option<usize> {
        of.min_by_key(|member| self.rank(*member))
    }
}

/// Which nodes are joined so far.
#[derive(Debug)]
struct Groups<'a> {
    nodes: &'a Nodes<'a>,
    contents: &'a BTreeMap<Content, Fields>,
    root: Vec<usize>,
    /// The nodes of each root.
    joined: Vec<Vec<usize>>,
    /// The roots that are not to be joined, each pair both ways. What tells two groups apart tells their unions apart.
    apart: Vec<BTreeSet<usize>>,
    /// Contents that somebody said are of one work, whatever the table says.
    reconciled: BTreeSet<(Content, Content)>,
}

impl<'a> Groups<'a> {
    fn new(nodes: &'a Nodes<'a>, contents: &'a BTreeMap<Content, Fields>, said: &[Said]) -> Self {
        let count = nodes.all.len();
        let mut apart = vec![BTreeSet::new(); count];
        let mut reconciled = BTreeSet::new();
        for Said { pair: (one, other), verdict } in said {
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

    /// Joins what somebody has said to be the same, unless that joins what somebody has said to be different.
    fn join_said(&mut self, said: &[Said]) {
        let mut same: Vec<_> = said.iter().filter(|said| said.verdict == Verdict::Same).collect();
        same.sort_unstable();
        for Said { pair: (one, other), .. } in same {
            let (one, other) = (self.root[self.nodes.of[*one]], self.root[self.nodes.of[*other]]);
            if one != other && !self.apart[one].contains(&other) {
                self.unite(one, other);
            }
        }
    }

    /// Joins the groups of two nodes, unless something tells them apart.
    fn join(&mut self, (one, other): (usize, usize)) {
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

/// Whether no chain of others may bring two records together.
fn conflict(a: &Fields, b: &Fields) -> bool {
    let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
    differ(a.pmid(), b.pmid())
        || a.is_notice() != b.is_notice()
        || differ(a.page(), b.page()) && journals(a, b) == Match::Differ
}
