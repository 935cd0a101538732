//! Groups records that describe the same work.
//!
//! Certain and likely pairs are joined one by one, the most certain first, unless this would join two records that
//! cannot be the same work. The order of the pairs depends on their content, not on their arrival, so the groups are
//! the same for any order of records. Reviewers' decisions take precedence over the table. The order of records matters
//! only among those with decisions: if a reviewer separates two copies, a third copy joins the earlier one.
//!
//! The marks of a group depend on the records and decisions of the group alone. A decision that separates records of
//! different groups only removes a possible mark between the two.

mod connected;
mod marking;
mod model;
mod nodes;

use std::collections::{BTreeMap, BTreeSet};

use self::marking::Marking;
pub use self::model::{Edge, Mark, Member, ReviewerDecision, Verdict};
use self::nodes::Nodes;
use crate::comparison::{Match, are_abstract_and_article, pages};
use crate::fields::{Content, Fields};
use crate::journal::journals;
use crate::place::without_version;
use crate::reason::Tier;
use crate::trials::are_other_trials;

/// Returns the mark of each member, or `None` for members to keep.
///
/// Within a group that is certain, every member refers to the first one. The first one refers to the first member of
/// the group that is likely the same work. The first member is the record that a reviewer chose to keep, or else the
/// earliest record. A member without a certain or likely match refers to the earliest member that is possibly the same
/// work.
///
/// Copies of a content that is missing in `contents` are not treated as the same work.
#[must_use]
pub fn marks(
    members: &[Member],
    contents: &BTreeMap<Content, Fields>,
    edges: &[Edge],
    decisions: &[ReviewerDecision],
) -> Vec<Option<Mark>> {
    let effective = connected::effective(members, contents, edges, decisions);
    let nodes = Nodes::new(members, contents, &effective);
    let links = nodes.links(edges);
    let mut groups = Groups::new(&nodes, contents, &effective);
    groups.join_decided(&effective);
    let certain = links.iter().take_while(|link| link.tier == Tier::Certain).count();
    links[..certain].iter().for_each(|link| groups.join(link.nodes.0, link.nodes.1));
    let surely = groups.roots();
    let likely = links[certain..].iter().take_while(|link| link.tier == Tier::Likely).count();
    links[certain..certain + likely].iter().for_each(|link| groups.join(link.nodes.0, link.nodes.1));
    Marking::new(&nodes, &links, decisions, surely, groups.roots()).marks()
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
    /// Pairs of contents that a reviewer marked as the same work, regardless of the table.
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
    let other_page = pages(a, b).differs();
    if other_page && journals(a, b) == Match::Differ || differ(a.pmid(), b.pmid()) {
        return true;
    }
    let same_pmid = !a.pmid().is_empty() && a.pmid() == b.pmid();
    let is_other_kind = || {
        a.is_notice() != b.is_notice()
            || a.is_reply() != b.is_reply()
            || are_other_trials(a.doi(), b.doi())
            || are_abstract_and_article(a, b) && !a.has_doi_of(b)
    };
    let is_other_doi =
        differ(a.doi(), b.doi()) && (other_page || without_version(a.doi()) == without_version(b.doi()));
    // Without another PubMed identifier, the same one outweighs the title and the DOI.
    (!same_pmid || other_page) && is_other_kind() || !same_pmid && is_other_doi
}
