//! The input and output of grouping.

use crate::{
    fields::{Content, Fields},
    reason::{Reason, Tier},
    table::compare,
};

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
    /// The smaller of the two contents, followed by the greater.
    pub pair: (Content, Content),
    /// The certainty.
    pub tier: Tier,
    /// The matching line of the table.
    pub reason: Reason,
}

impl Edge {
    /// Compares two records. Returns `None` if the records are copies of each other, or if no line of the table
    /// matches.
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
