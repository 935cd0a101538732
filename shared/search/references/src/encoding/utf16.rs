//! Converts UTF-16 to UTF-8.

use super::Encoding;

/// Converts UTF-16 to UTF-8 in chunks of any size. An unpaired surrogate or a trailing odd byte becomes U+FFFD, so each
/// unit of input remains one unit of output, and offsets in the original file can be computed.
#[derive(Debug)]
pub(crate) struct Utf16 {
    big_endian: bool,
    odd: Option<u8>,
    high: Option<u16>,
}

impl Utf16 {
    pub(crate) fn new(encoding: Encoding) -> Self {
        Self { big_endian: encoding == Encoding::Utf16Be, odd: None, high: None }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len());
        for &byte in bytes {
            match self.odd.take() {
                None => self.odd = Some(byte),
                Some(first) if self.big_endian => self.unit(u16::from_be_bytes([first, byte]), out),
                Some(first) => self.unit(u16::from_le_bytes([first, byte]), out),
            }
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let left = usize::from(self.high.take().is_some()) + usize::from(self.odd.take().is_some());
        for _ in 0..left {
            append(out, char::REPLACEMENT_CHARACTER);
        }
    }

    fn unit(&mut self, unit: u16, out: &mut Vec<u8>) {
        let units = self.high.take().into_iter().chain([unit]);
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(c) => append(out, c),
                Err(error) => match error.unpaired_surrogate() {
                    // A high surrogate that waits for its other half.
                    high @ 0xD800..=0xDBFF if high == unit && self.high.is_none() => self.high = Some(high),
                    _ => append(out, char::REPLACEMENT_CHARACTER),
                },
            }
        }
    }
}

fn append(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The number of UTF-16 units of a text: one per character, or two beyond the basic plane.
pub(crate) fn utf16_units(utf8: &[u8]) -> u64 {
    utf8.iter().map(|&byte| u64::from(byte & 0xC0 != 0x80) + u64::from(byte >= 0xF0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(chunks: &[&[u8]]) -> String {
        let (mut utf16, mut out) = (Utf16::new(Encoding::Utf16Le), Vec::new());
        for chunk in chunks {
            utf16.push(chunk, &mut out);
        }
        utf16.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn surrogate_pair_survives_any_chunking() {
        let bytes: Vec<u8> = "a𝛼b".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for at in 0..bytes.len() {
            assert_eq!(utf8(&[&bytes[..at], &bytes[at..]]), "a𝛼b");
        }
        assert_eq!(utf16_units("a𝛼b".as_bytes()), 4);
    }

    #[test]
    fn unpaired_surrogates_remain_one_unit_each() {
        let two_highs: Vec<u8> = [0xD835_u16, 0xD835, 0x61].iter().flat_map(|u| u.to_le_bytes()).collect();
        assert_eq!(utf8(&[&two_highs]), "\u{FFFD}\u{FFFD}a");
        assert_eq!(utf8(&[&[0x61, 0, 0x62]]), "a\u{FFFD}");
        assert_eq!(utf8(&[&[0x35, 0xD8]]), "\u{FFFD}");
    }
}
