//! The names of encodings, for display and storage.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Encoding, OtherEncoding};

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8Bom => "UTF-8 with BOM",
            Self::Utf16Le => "UTF-16 (little-endian)",
            Self::Utf16Be => "UTF-16 (big-endian)",
            Self::Windows1252 => "Windows-1252",
            Self::Iso8859_1 => "ISO-8859-1",
            Self::MacRoman => "MacRoman",
            Self::Cp850 => "CP850",
            Self::Other(OtherEncoding(encoding)) => encoding.name(),
        })
    }
}

const NAMES: [(Encoding, &str); 8] = [
    (Encoding::Utf8, "utf-8"),
    (Encoding::Utf8Bom, "utf-8-bom"),
    (Encoding::Utf16Le, "utf-16le"),
    (Encoding::Utf16Be, "utf-16be"),
    (Encoding::Windows1252, "windows-1252"),
    (Encoding::Iso8859_1, "iso-8859-1"),
    (Encoding::MacRoman, "macintosh"),
    (Encoding::Cp850, "cp850"),
];

impl Encoding {
    /// Returns the encoding with this displayed name.
    #[must_use]
    pub fn named(shown: &str) -> Option<Self> {
        let known = NAMES.iter().map(|(encoding, _)| *encoding).find(|known| known.to_string() == shown);
        let other = || encoding_rs::Encoding::for_label(shown.as_bytes());
        known.or_else(|| other().map(|encoding| Self::Other(OtherEncoding(encoding))))
    }
}

impl Serialize for Encoding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (NAMES.iter().find(|(encoding, _)| encoding == self), self) {
            (Some((_, name)), _) => serializer.serialize_str(name),
            (None, Self::Other(OtherEncoding(encoding))) => {
                serializer.serialize_str(&encoding.name().to_ascii_lowercase())
            }
            (None, _) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Encoding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if let Some((encoding, _)) = NAMES.iter().find(|(_, known)| *known == name) {
            return Ok(*encoding);
        }
        let other = encoding_rs::Encoding::for_label(name.as_bytes());
        other
            .map(|encoding| Self::Other(OtherEncoding(encoding)))
            .ok_or_else(|| de::Error::custom("unknown encoding"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_serialize_by_name() {
        let other = Encoding::Other(OtherEncoding(encoding_rs::SHIFT_JIS));
        for (encoding, name) in NAMES.into_iter().chain([(other, "shift_jis")]) {
            let json = serde_json::to_string(&encoding).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Encoding>(&json).unwrap(), encoding);
            assert_eq!(Encoding::named(&encoding.to_string()), Some(encoding));
        }
        assert!(serde_json::from_str::<Encoding>("\"rot13\"").is_err());
        assert_eq!(Encoding::named("rot13"), None);
    }
}
