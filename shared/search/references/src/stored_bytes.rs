//! Bytes in a form that JSON can store.

use serde::{Deserialize, Serialize};

/// Bytes that are mostly text: each byte is stored as the character with its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl From<String> for Bytes {
    fn from(text: String) -> Self {
        Self(text.chars().filter_map(|c| u8::try_from(c).ok()).collect())
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        bytes.0.into_iter().map(char::from).collect()
    }
}
