//! How what a study says is kept small.
//!
//! Each text is a zstd frame of its own, with its length and a checksum. So one study is read without any other, and bytes that
//! were damaged are noticed and cost no other study.
//!
//! A single study repeats little of itself, and much of what every study says: the names of fields, and the words that
//! abstracts are made of. Frames refer to those in a text that is in this program, the [`WORDS`], and to how often letters
//! occur, the [`TABLES`], which each frame would have to count and say otherwise.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{Error, ErrorKind};
use std::sync::LazyLock;
use std::thread::LocalKey;

use rusqlite::Row;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CParameter, get_dict_id_from_frame, get_frame_content_size};

use crate::fault::Fault;

/// Quick rather than small: for pieces of files the next levels take half as long again for a fiftieth of the room, and for
/// studies more of both, since the tables were made for this one.
pub(crate) const LEVEL: i32 = 1;

/// What frames refer to. Never changed, like the tables: whatever was packed with it could not be read any more. A better one is
/// one more.
const WORDS: &[u8] = include_bytes!("dictionary.txt");

/// What stands before the words in zstd's form of a dictionary: its number, and how often letters and lengths occur.
const TABLES: &[u8] = include_bytes!("dictionary.tables");

/// Both, made ready once for all who pack and unpack.
static TO_PACK: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(&with_tables(), LEVEL));
static TO_UNPACK: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(&with_tables()));
/// The words alone, which have no number.
static TO_UNPACK_BEFORE: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(WORDS));

fn with_tables() -> Vec<u8> {
    [TABLES, WORDS].concat()
}

/// The number in the tables. Those below are kept for dictionaries that everybody knows, see
/// <https://github.com/facebook/zstd/blob/dev/doc/zstd_compression_format.md#dictionary-format>.
const NUMBER: u32 = 32_768;

/// Whether a frame was packed with the words and the tables.
fn is_with_tables(packed: &[u8]) -> bool {
    get_dict_id_from_frame(packed).is_some_and(|number| number.get() == NUMBER)
}

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

/// What a thread packs with, once it has packed. Made anew each time it would fetch its memory anew.
pub(crate) type Ready = RefCell<Option<Compressor<'static>>>;

/// Packs something with what the thread has, which is made first if need be.
pub(crate) fn compress(
    ready: &'static LocalKey<Ready>,
    make: fn() -> std::io::Result<Compressor<'static>>,
    bytes: &[u8],
) -> std::io::Result<Vec<u8>> {
    ready.with_borrow_mut(|ready| match ready {
        Some(ready) => ready.compress(bytes),
        none => none.insert(make()?).compress(bytes),
    })
}

/// Something that packs pieces of files, which repeat enough of themselves.
pub(crate) fn compressor() -> std::io::Result<Compressor<'static>> {
    with_checksums(Compressor::new(LEVEL)?)
}

/// Something that packs texts.
fn with_dictionary() -> std::io::Result<Compressor<'static>> {
    with_checksums(Compressor::with_prepared_dictionary(&TO_PACK)?)
}

fn with_checksums(mut compressor: Compressor<'static>) -> std::io::Result<Compressor<'static>> {
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    Ok(compressor)
}

thread_local! {
    static PACKER: Ready = const { RefCell::new(None) };
}

/// The text as it takes the least room.
pub(crate) fn pack(text: String) -> Result<Said, Fault> {
    if text.len() > MOST_BYTES {
        return Ok(Said::Text(text));
    }
    let packed = compress(&PACKER, with_dictionary, text.as_bytes()).map_err(Fault::Pack)?;
    Ok(if packed.len() < text.len() { Said::Packed(packed) } else { Said::Text(text) })
}

/// Reads texts, packed ones too, with the dictionary of this release or that of the one before. Frames of releases without any
/// refer to nothing in that.
#[derive(Default)]
pub(crate) struct Unpacker {
    now: Option<Decompressor<'static>>,
    before: Option<Decompressor<'static>>,
}

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
        let (unpacker, dictionary) = if is_with_tables(packed) {
            (&mut self.now, &TO_UNPACK)
        } else {
            (&mut self.before, &TO_UNPACK_BEFORE)
        };
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(Decompressor::with_prepared_dictionary(dictionary)?),
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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"line":1,"reference":{"title":"A pilot study of usual care","authors":["Smith, John"],"year":2019}}"#;
    /// As it was packed with the words alone.
    const BEFORE: &[u8] = &[
        40, 181, 47, 253, 36, 100, 245, 0, 0, 80, 65, 32, 111, 102, 111, 104, 110, 57, 125, 125, 5, 0, 75,
        230, 99, 242, 204, 10, 180, 202, 49, 102, 15, 14, 119, 204, 226, 57, 8, 12, 229, 185, 1,
    ];
    /// As it was packed when there were tables first.
    const PACKED: &[u8] = &[
        40, 181, 47, 253, 38, 0, 128, 100, 237, 0, 0, 80, 65, 32, 111, 102, 111, 104, 110, 57, 125, 125, 5,
        252, 75, 86, 97, 158, 255, 182, 10, 198, 123, 112, 215, 152, 197, 255, 52, 58, 12, 229, 185, 1,
    ];

    #[test]
    fn what_was_packed_once_can_be_read_for_good() {
        let mut unpacker = Unpacker::default();
        assert_eq!(unpacker.unpack(PACKED).unwrap(), TEXT, "the dictionary is another one");
        assert_eq!(unpacker.unpack(BEFORE).unwrap(), TEXT);
        let Said::Packed(now) = pack(TEXT.to_owned()).unwrap() else { panic!() };
        assert!(is_with_tables(&now) && now.len() <= PACKED.len(), "{now:?}");
        // What a release before has packed without a dictionary, between two with one.
        let before = compressor().unwrap().compress(TEXT.as_bytes()).unwrap();
        assert!(before.len() > PACKED.len());
        assert_eq!(unpacker.unpack(&before).unwrap(), TEXT);
        assert_eq!(unpacker.unpack(PACKED).unwrap(), TEXT);
        for packed in [BEFORE, PACKED] {
            assert!(Decompressor::new().unwrap().decompress(packed, TEXT.len()).is_err());
        }
    }

    /// One of a later release, say.
    #[test]
    fn a_frame_with_an_unknown_dictionary_is_refused() {
        let mut other = with_tables();
        // Behind the four bytes by which zstd knows a dictionary.
        other[4] ^= 1;
        let other = EncoderDictionary::copy(&other, LEVEL);
        let mut packer = Compressor::with_prepared_dictionary(&other).unwrap();
        let packed = packer.compress(TEXT.as_bytes()).unwrap();
        let error = Unpacker::default().unpack(&packed).unwrap_err();
        assert!(error.to_string().contains("ictionary"), "{error}");
    }
}
