//! The agreement of one value of two records.

/// The result of comparing one value of two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Agree,
    /// At least one value is missing.
    Unknown,
    Differ,
}

impl Match {
    pub(crate) fn agrees(self) -> bool {
        self == Self::Agree
    }

    pub(crate) fn differs(self) -> bool {
        self == Self::Differ
    }

    pub(crate) fn is_unknown(self) -> bool {
        self == Self::Unknown
    }

    pub(crate) fn from_equality(is_equal: bool) -> Self {
        if is_equal { Self::Agree } else { Self::Differ }
    }

    pub(crate) fn text(one: &str, other: &str) -> Self {
        if one.is_empty() || other.is_empty() { Self::Unknown } else { Self::from_equality(one == other) }
    }
}
