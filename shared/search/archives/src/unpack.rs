//! Packed bytes to unpacked ones.

use std::io::Write;

use flate2::{Decompress, FlushDecompress, Status, write::MultiGzDecoder};

use crate::{Entry, Error, Limits};

/// The most unpacked bytes that one call of [`Unpack::push`] adds, about.
pub const MOST_AT_ONCE: usize = 512 * 1024;

/// How many packed bytes are handed to a decompressor at a time: they become a thousand times as many at most.
const STEP: usize = 256;

/// Unpacks one stream, which is handed over in pieces of any size.
#[derive(Debug)]
pub struct Unpack {
    kind: Kind,
    limits: Limits,
    packed: u64,
    unpacked: u64,
}

#[derive(Debug)]
enum Kind {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Entry { inflate: Option<Decompress>, ended: bool, crc: crc32fast::Hasher, entry: Entry },
}

impl Unpack {
    /// Unpacks a gzip file, of one member or several.
    #[must_use]
    pub fn gzip(limits: Limits) -> Self {
        let kind = Kind::Gzip(Box::new(MultiGzDecoder::new(Vec::new())));
        Self { kind, limits, packed: 0, unpacked: 0 }
    }

    /// Unpacks an entry of a ZIP archive, of which exactly [`Entry::packed`] bytes are to be handed over.
    #[must_use]
    pub fn entry(entry: Entry, limits: Limits) -> Self {
        let inflate = entry.is_deflated.then(|| Decompress::new(false));
        let kind = Kind::Entry { inflate, ended: false, crc: crc32fast::Hasher::new(), entry };
        Self { kind, limits, packed: 0, unpacked: 0 }
    }

    /// How many packed bytes were taken.
    #[must_use]
    pub fn packed(&self) -> u64 {
        self.packed
    }

    /// Takes some of the next packed bytes and adds what they become; returns how many were taken, which is at least one if
    /// there are any. About [`MOST_AT_ONCE`] bytes are added at most.
    ///
    /// # Errors
    /// When the bytes are damaged, or become more than the limits allow.
    pub fn push(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Result<usize, Error> {
        let (before, mut taken) = (out.len(), 0);
        while taken < packed.len() && out.len() - before < MOST_AT_ONCE {
            let piece = &packed[taken..packed.len().min(taken + STEP)];
            let added = out.len();
            self.kind.step(piece, out)?;
            taken += piece.len();
            self.packed += piece.len() as u64;
            self.unpacked += (out.len() - added) as u64;
            self.limits.check(self.packed, self.unpacked)?;
            if let Kind::Entry { entry, .. } = &self.kind
                && self.unpacked > entry.unpacked
            {
                return Err(damaged("an entry is larger than the archive says"));
            }
        }
        Ok(taken)
    }

    /// Says that all packed bytes were handed over; adds what is left.
    ///
    /// # Errors
    /// When some are missing, or the checksum is wrong.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.kind {
            Kind::Gzip(decoder) => {
                decoder.try_finish().map_err(|_| gzip("it was cut short, or its checksum is wrong"))?;
                out.append(decoder.get_mut());
            }
            Kind::Entry { inflate, ended, crc, entry } => {
                let is_whole = inflate.is_none() || *ended;
                if !is_whole || self.unpacked != entry.unpacked || crc.clone().finalize() != entry.crc {
                    return Err(damaged("an entry was cut short, or its checksum is wrong"));
                }
            }
        }
        Ok(())
    }
}

impl Kind {
    /// Unpacks a few bytes.
    fn step(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let before = out.len();
        match self {
            Self::Gzip(decoder) => {
                decoder.write_all(piece).map_err(|_| gzip("its bytes make no sense"))?;
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
                    let status = status.map_err(|_| damaged("the bytes of an entry make no sense"))?;
                    crc.update(&out[at..]);
                    let read = usize::try_from(inflate.total_in() - begun).unwrap_or(rest.len());
                    rest = &rest[read.min(rest.len())..];
                    *ended = status == Status::StreamEnd;
                    // Room that was left means that nothing more can be made of what there is.
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
