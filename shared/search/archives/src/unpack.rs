//! Decompresses gzip files and entries of ZIP archives.

use std::io::Write;

use flate2::{Decompress, FlushDecompress, Status, write::MultiGzDecoder};

use crate::{Entry, Error, Limits};

/// The approximate maximum number of unpacked bytes that one call of [`Unpacker::push`] appends.
pub const MAX_OUTPUT: usize = 512 * 1024;

/// The number of packed bytes that a decompressor receives at a time. Compressed bytes grow by a factor of 1,000 at
/// most.
const STEP: usize = 256;

/// Unpacks one stream, which arrives in pieces of any size.
#[derive(Debug)]
pub struct Unpacker {
    decoder: Decoder,
    limits: Limits,
    packed: u64,
    unpacked: u64,
}

#[derive(Debug)]
enum Decoder {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Entry { inflate: Option<Decompress>, ended: bool, crc: crc32fast::Hasher, entry: Entry },
}

impl Unpacker {
    /// Creates a decompressor for a gzip file with one or several members.
    #[must_use]
    pub fn gzip(limits: Limits) -> Self {
        let decoder = Decoder::Gzip(Box::new(MultiGzDecoder::new(Vec::new())));
        Self { decoder, limits, packed: 0, unpacked: 0 }
    }

    /// Creates a decompressor for an entry of a ZIP archive. It must receive exactly [`Entry::packed`] bytes.
    #[must_use]
    pub fn entry(entry: Entry, limits: Limits) -> Self {
        let inflate = entry.is_deflated.then(|| Decompress::new(false));
        let decoder = Decoder::Entry { inflate, ended: false, crc: crc32fast::Hasher::new(), entry };
        Self { decoder, limits, packed: 0, unpacked: 0 }
    }

    /// The number of packed bytes consumed so far.
    #[must_use]
    pub fn packed(&self) -> u64 {
        self.packed
    }

    /// Consumes some of the next packed bytes and appends the unpacked bytes, about [`MAX_OUTPUT`] at most. Returns
    /// the number of consumed bytes, which is at least one unless `packed` is empty.
    ///
    /// # Errors
    /// Returns an error if the bytes are damaged, or the unpacked size exceeds the limits.
    pub fn push(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Result<usize, Error> {
        let (before, mut taken) = (out.len(), 0);
        while taken < packed.len() && out.len() - before < MAX_OUTPUT {
            let piece = &packed[taken..packed.len().min(taken + STEP)];
            let added = out.len();
            self.decoder.step(piece, out)?;
            taken += piece.len();
            self.packed += piece.len() as u64;
            self.unpacked += (out.len() - added) as u64;
            self.limits.check(self.packed, self.unpacked)?;
            if let Decoder::Entry { entry, .. } = &self.decoder
                && self.unpacked > entry.unpacked
            {
                return Err(damaged("an entry is larger than declared"));
            }
        }
        Ok(taken)
    }

    /// Ends the stream and appends the remaining unpacked bytes.
    ///
    /// # Errors
    /// Returns an error if bytes are missing, or the checksum does not match.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.decoder {
            Decoder::Gzip(decoder) => {
                decoder.try_finish().map_err(|_| gzip("it was cut short, or its checksum is wrong"))?;
                out.append(decoder.get_mut());
            }
            Decoder::Entry { inflate, ended, crc, entry } => {
                let is_whole = inflate.is_none() || *ended;
                if !is_whole || self.unpacked != entry.unpacked || crc.clone().finalize() != entry.crc {
                    return Err(damaged("an entry was cut short, or its checksum is wrong"));
                }
            }
        }
        Ok(())
    }
}

impl Decoder {
    /// Unpacks a few bytes.
    fn step(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let before = out.len();
        match self {
            Self::Gzip(decoder) => {
                decoder.write_all(piece).map_err(|_| gzip("its bytes cannot be unpacked"))?;
                out.append(decoder.get_mut());
            }
            Self::Entry { inflate: None, crc, .. } => {
                crc.update(piece);
                out.extend_from_slice(piece);
            }
            Self::Entry { inflate: Some(inflate), ended, crc, .. } => {
                let mut rest = piece;
                loop {
                    if *ended {
                        let is_done = rest.is_empty();
                        return if is_done {
                            Ok(())
                        } else {
                            Err(damaged("bytes follow the end of an entry"))
                        };
                    }
                    let (begun, at) = (inflate.total_in(), out.len());
                    out.reserve(64 * 1024);
                    let status = inflate.decompress_vec(rest, out, FlushDecompress::None);
                    let status = status.map_err(|_| damaged("the bytes of an entry cannot be unpacked"))?;
                    crc.update(&out[at..]);
                    let read = usize::try_from(inflate.total_in() - begun).unwrap_or(rest.len());
                    rest = &rest[read.min(rest.len())..];
                    *ended = status == Status::StreamEnd;
                    // Unused capacity means that the decompressor has no more output for the bytes so far.
                    if !*ended && rest.is_empty() && out.len() < out.capacity() {
                        break;
                    }
                    if !*ended && read == 0 && out.len() == at {
                        break;
                    }
                }
            }
        }
        debug_assert!(out.len() >= before);
        Ok(())
    }
}

fn damaged(fault: &'static str) -> Error {
    Error::Damaged { what: "ZIP archive", fault }
}

fn gzip(fault: &'static str) -> Error {
    Error::Damaged { what: "gzip file", fault }
}
