//! An operator's intervention, as stored with the instance.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// When and why an operator acted on an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervention {
    /// The time.
    pub at: Timestamp,
    /// The operator, as the authentication names them.
    pub by: String,
    /// The reason; empty if the operator gave none.
    pub why: String,
}

impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.by)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}
