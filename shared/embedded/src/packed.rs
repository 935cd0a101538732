//! How what a study says is kept small.
//!
//! Each text is a zstd frame of its own, with its length and a checksum. So one study is read without any other, bytes that
//! were damaged are noticed and cost no other study, and nothing has to be kept beside a frame to read it.

use std::borrow::Cow;
use std::io::{Error, ErrorKind};

use rusqlite::Row;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, get_frame_content_size};

use crate::fault::Fault;

/// Quick rather than small: the next levels take half as long again for a fiftieth of the room.
pub(crate) const LEVEL: i32 = 1;

/// The longest text that is packed. What is read may be somebody else's, so what it claims to be is bounded.
const MOST_BYTES: usize = 64 << 20;

/// What a column says of a study.
#[derive(Debug)]
pub(crate) enum Said {
    /// The text itself.
    Text(String),
    /// The text, packed.
    Packed(Vec<u8>),
}

impl Said {
    /// What is written into the column of texts, and into that of packed ones.
    pub(crate) fn columns(&self) -> (&str, Option<&[u8]>) {
        match self {
            Self::Text(text) => (text, None),
            Self::Packed(packed) => ("", Some(packed)),
        }
    }
}

/// Something that packs.
pub(crate) fn compressor() -> std::io::Result<Compressor<'static>> {
    let mut compressor = Compressor::new(LEVEL)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    Ok(compressor)
}

/// Packs texts.
pub(crate) struct Packer(Compressor<'static>);

impl Packer {
    pub(crate) fn new() -> Result<Self, Fault> {
        Ok(Self(compressor().map_err(Fault::Pack)?))
    }

    /// The text as it takes the least room.
    pub(crate) fn pack(&mut self, text: String) -> Result<Said, Fault> {
        if text.len() > MOST_BYTES {
            return Ok(Said::Text(text));
        }
        let packed = self.0.compress(text.as_bytes()).map_err(Fault::Pack)?;
        Ok(if packed.len() < text.len() { Said::Packed(packed) } else { Said::Text(text) })
    }
}

/// Reads texts, packed ones too.
#[derive(Default)]
pub(crate) struct Unpacker(Option<Decompressor<'static>>);

impl Unpacker {
    /// What a row says in a column, or packed in another.
    pub(crate) fn said<'a>(
        &mut self,
        row: &'a Row<'_>,
        text: usize,
        packed: usize,
    ) -> Result<Cow<'a, str>, Fault> {
        match row.get_ref(packed)?.as_blob_or_null().map_err(rusqlite::Error::from)? {
            Some(packed) => Ok(Cow::Owned(self.unpack(packed).map_err(Fault::Packed)?)),
            None => Ok(Cow::Borrowed(row.get_ref(text)?.as_str().map_err(rusqlite::Error::from)?)),
        }
    }

    fn unpack(&mut self, packed: &[u8]) -> std::io::Result<String> {
        let unpacker = match &mut self.0 {
            Some(unpacker) => unpacker,
            none => none.insert(Decompressor::new()?),
        };
        let claimed = get_frame_content_size(packed).ok().flatten();
        let length =
            claimed.and_then(|length| usize::try_from(length).ok()).filter(|length| *length <= MOST_BYTES);
        let length =
            length.ok_or_else(|| Error::new(ErrorKind::InvalidData, "it does not say how long it is"))?;
        let bytes = unpacker.decompress(packed, length)?;
        String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
    }
}
