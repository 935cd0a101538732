//! The compression of the texts of studies.
//!
//! Each text is its own zstd frame with its length and a checksum. A study is therefore read without any other, and
//! damaged bytes are detected and affect no other study.
//!
//! A single study repeats little within itself, but much that is common to all studies: the names of fields, and the
//! vocabulary of abstracts. Frames refer to a dictionary in this program, the [`WORDS`], and to its letter frequencies,
//! the [`TABLES`], which each frame would otherwise have to contain.

use std::cell::RefCell;
use std::io::{Error, ErrorKind};
use std::sync::LazyLock;
use std::thread::LocalKey;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CParameter, get_dict_id_from_frame, get_frame_content_size};

/// The compression level prefers speed to size: for pieces of files, the next levels take 50 % more time to save 2 % of
/// the space. For studies they take more of both, since the tables were made for this level.
pub(crate) const LEVEL: i32 = 1;

/// The dictionary. The dictionary and the tables must never change, because existing frames would become unreadable. A
/// better dictionary is added under another number.
const WORDS: &[u8] = include_bytes!("dictionary.txt");

/// The header of the dictionary in zstd's format: its number, and the frequencies of letters and lengths.
const TABLES: &[u8] = include_bytes!("dictionary.tables");

/// The dictionary with its tables, prepared once for all compressors and decompressors.
static TO_PACK: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(&with_tables(), LEVEL));
static TO_UNPACK: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(&with_tables()));
/// The words alone, for frames of earlier versions, which have no dictionary number.
static TO_UNPACK_BEFORE: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(WORDS));

fn with_tables() -> Vec<u8> {
    [TABLES, WORDS].concat()
}

/// The number of the dictionary. Lower numbers are reserved for registered dictionaries, see
/// <https://github.com/facebook/zstd/blob/dev/doc/zstd_compression_format.md#dictionary-format>.
const NUMBER: u32 = 32_768;

/// Returns `true` if a frame was compressed with the dictionary and its tables.
fn is_with_tables(packed: &[u8]) -> bool {
    get_dict_id_from_frame(packed).is_some_and(|number| number.get() == NUMBER)
}

/// The maximum length of a compressed text. The database may be untrusted, so the claimed length is bounded.
const MAX_BYTES: usize = 64 << 20;

/// The stored form of a text.
#[derive(Debug)]
pub(crate) enum StoredText {
    /// The text itself.
    Text(String),
    /// The compressed text.
    Packed(Vec<u8>),
}

impl StoredText {
    /// Returns the values of the column of texts and of the column of compressed texts.
    pub(crate) fn columns(&self) -> (&str, Option<&[u8]>) {
        match self {
            Self::Text(text) => (text, None),
            Self::Packed(packed) => ("", Some(packed)),
        }
    }
}

/// The compressor of a thread, created at its first use and kept, because a new one allocates its memory again.
pub(crate) type Ready = RefCell<Option<Compressor<'static>>>;

/// Compresses bytes with the thread's compressor, which is created if necessary.
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

/// Returns a compressor for pieces of files, which repeat enough within themselves.
pub(crate) fn compressor() -> std::io::Result<Compressor<'static>> {
    with_checksums(Compressor::new(LEVEL)?)
}

/// Returns a compressor for texts.
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

/// Returns the smaller stored form of a text.
pub(crate) fn pack(text: String) -> std::io::Result<StoredText> {
    if text.len() > MAX_BYTES {
        return Ok(StoredText::Text(text));
    }
    let packed = compress(&PACKER, with_dictionary, text.as_bytes())?;
    Ok(if packed.len() < text.len() { StoredText::Packed(packed) } else { StoredText::Text(text) })
}

/// Decompresses texts, with the dictionary of this version or the previous one. Frames of versions
/// without a dictionary do not refer to one.
#[derive(Default)]
pub(crate) struct Unpacker {
    now: Option<Decompressor<'static>>,
    before: Option<Decompressor<'static>>,
}

impl Unpacker {
    /// Returns the text of a frame.
    pub(crate) fn unpack(&mut self, packed: &[u8]) -> std::io::Result<String> {
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
            claimed.and_then(|length| usize::try_from(length).ok()).filter(|length| *length <= MAX_BYTES);
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
    /// Compresses like an earlier version, with only the words.
    const BEFORE: &[u8] = &[
        40, 181, 47, 253, 36, 100, 245, 0, 0, 80, 65, 32, 111, 102, 111, 104, 110, 57, 125, 125, 5, 0, 75,
        230, 99, 242, 204, 10, 180, 202, 49, 102, 15, 14, 119, 204, 226, 57, 8, 12, 229, 185, 1,
    ];
    /// Compresses as the first version with tables did.
    const PACKED: &[u8] = &[
        40, 181, 47, 253, 38, 0, 128, 100, 237, 0, 0, 80, 65, 32, 111, 102, 111, 104, 110, 57, 125, 125, 5,
        252, 75, 86, 97, 158, 255, 182, 10, 198, 123, 112, 215, 152, 197, 255, 52, 58, 12, 229, 185, 1,
    ];

    #[test]
    fn earlier_packed_text_is_readable() {
        let mut unpacker = Unpacker::default();
        assert_eq!(unpacker.unpack(PACKED).unwrap(), TEXT, "the dictionary is another one");
        assert_eq!(unpacker.unpack(BEFORE).unwrap(), TEXT);
        let StoredText::Packed(now) = pack(TEXT.to_owned()).unwrap() else { panic!() };
        assert!(is_with_tables(&now) && now.len() <= PACKED.len(), "{now:?}");
        // A text that an earlier version compressed without a dictionary, between two texts that were compressed with
        // one.
        let before = compressor().unwrap().compress(TEXT.as_bytes()).unwrap();
        assert!(before.len() > PACKED.len());
        assert_eq!(unpacker.unpack(&before).unwrap(), TEXT);
        assert_eq!(unpacker.unpack(PACKED).unwrap(), TEXT);
        for packed in [BEFORE, PACKED] {
            assert!(Decompressor::new().unwrap().decompress(packed, TEXT.len()).is_err());
        }
    }

    /// A study may need a dictionary that this version does not know, such as one of a newer version.
    #[test]
    fn frame_with_unknown_dictionary_is_refused() {
        let mut other = with_tables();
        // After the four magic bytes of a dictionary.
        other[4] ^= 1;
        let other = EncoderDictionary::copy(&other, LEVEL);
        let mut packer = Compressor::with_prepared_dictionary(&other).unwrap();
        let packed = packer.compress(TEXT.as_bytes()).unwrap();
        let error = Unpacker::default().unpack(&packed).unwrap_err();
        assert!(error.to_string().contains("ictionary"), "{error}");
    }
}
