//! The encodings that are compatible with ASCII.

use std::borrow::Cow;

use encoding_rs::ISO_2022_JP;
use oem_cp::code_table::DECODING_TABLE_CP850;

use super::jis;

/// An encoding of bytes that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// An encoding of the web.
    Web(&'static encoding_rs::Encoding),
    /// Code page 850 of DOS, for western Europe.
    Cp850,
}

impl Decoder {
    pub(crate) fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Web(_) if self.is_iso_2022_jp() => {
                let bytes = jis::original(bytes);
                Cow::Owned(ISO_2022_JP.decode_without_bom_handling(&bytes).0.into_owned())
            }
            Self::Web(encoding) => encoding.decode_without_bom_handling(bytes).0,
            Self::Cp850 => Cow::Owned(bytes.iter().map(|byte| cp850(*byte)).collect()),
        }
    }

    pub(super) fn is_iso_2022_jp(self) -> bool {
        self == Self::Web(ISO_2022_JP)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Web(encoding) => encoding.name(),
            Self::Cp850 => "CP850",
        }
    }

    /// Returns the encoding with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        if name == Self::Cp850.name() {
            return Some(Self::Cp850);
        }
        encoding_rs::Encoding::for_label(name.as_bytes()).map(Self::Web)
    }
}

fn cp850(byte: u8) -> char {
    match byte.checked_sub(0x80) {
        Some(at) => DECODING_TABLE_CP850[usize::from(at)],
        None => char::from(byte),
    }
}
