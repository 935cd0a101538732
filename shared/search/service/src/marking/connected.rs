//! Studies that matches connect, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use imports::duplicates::{ComparedStudy, Content, Edge};
use imports::{Decisions, StudyRef};

/// Returns the studies that are connected to a study before them. A study that a reviewer chose to keep precedes the
/// others.
///
/// A worker that sees fewer studies marks only such a study: its mark refers to a preceding study, and each of its
/// matches is also one of these.
pub(super) fn after_another(
    studies: &[ComparedStudy<'_>],
    edges: &[Edge],
    decisions: &Decisions,
) -> BTreeSet<StudyRef> {
    let contents: BTreeMap<StudyRef, Content> =
        studies.iter().map(|study| (study.at(), study.content)).collect();
    let mut neighbours: BTreeMap<Content, Vec<Content>> = BTreeMap::new();
    let mut connect = |(one, other)| {
        neighbours.entry(one).or_default().push(other);
        neighbours.entry(other).or_default().push(one);
    };
    edges.iter().for_each(|edge| connect(edge.pair));
    for (at, content) in &contents {
        let same = decisions.same_as(*at).iter().filter_map(|partner| contents.get(partner));
        same.for_each(|partner| connect((*content, *partner)));
    }
    let mut in_order: Vec<_> = studies.iter().collect();
    in_order.sort_by_key(|study| (!decisions.keeps(study.at()), study.file.order(study.identity.record)));
    let (mut reached, mut after) = (BTreeSet::new(), BTreeSet::new());
    for study in in_order {
        if !reached.insert(study.content) {
            after.insert(study.at());
            continue;
        }
        let mut open = vec![study.content];
        while let Some(content) = open.pop() {
            let next = neighbours.get(&content).into_iter().flatten();
            open.extend(next.filter(|next| reached.insert(**next)));
        }
    }
    after
}
