//! The compression of uploaded objects.
//!
//! A file is a series of pieces. Each piece is a zstd frame with [`PIECE_BYTES`] bytes of the object, fewer in the last
//! one, after a skippable frame with the length of the piece
//! (<https://github.com/facebook/zstd/blob/dev/doc/zstd_compression_format.md#skippable-frames>). An object is
//! therefore readable from any byte by skipping pieces, and `zstd -dc` decompresses the file without this program.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};

use zstd::bulk::Decompressor;
use zstd::zstd_safe::compress_bound;

use super::packed::{Ready, compress, compressor};

/// The size of the pieces in which an object is read: large enough that switching threads costs little, and small
/// enough that many objects may be read at the same time. Compressed objects consist of pieces of this size, so it must
/// not change.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// The header of a skippable frame of four bytes. These bytes are the length of the next frame.
const HEAD: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0];

thread_local! {
    static COMPRESSOR: Ready = const { RefCell::new(None) };
}

/// A piece as it is written.
pub(crate) fn pack(piece: &[u8]) -> Result<Vec<u8>> {
    let frame = compress(&COMPRESSOR, compressor, piece)?;
    let length = u32::try_from(frame.len()).map_err(|error| Error::new(ErrorKind::InvalidInput, error))?;
    Ok([&HEAD, length.to_le_bytes().as_slice(), &frame].concat())
}

/// Reads the pieces of a file.
pub(crate) struct Frames<F = File> {
    file: F,
    /// The number of bytes of the next piece to skip.
    skip: usize,
    unpacker: Decompressor<'static>,
}

impl<F: Read + Seek> Frames<F> {
    /// Opens a file at byte `from` of the object.
    pub(crate) fn open(file: F, from: u64) -> Result<Self> {
        let mut frames = Self { file, skip: 0, unpacker: Decompressor::new()? };
        for _ in 0..from / PIECE_BYTES as u64 {
            let Some(length) = frames.head()? else { break };
            frames.file.seek(SeekFrom::Current(length.into()))?;
        }
        // The remainder fits into `usize`, because it is less than the size of a piece.
        frames.skip = (from % PIECE_BYTES as u64) as usize;
        Ok(frames)
    }

    /// Returns the next bytes of the object, from up to `pieces` pieces, and the reader of the rest; `None` at its end.
    pub(crate) fn next(mut self, pieces: usize) -> Result<Option<(Vec<u8>, Self)>> {
        let mut bytes = Vec::new();
        for _ in 0..pieces {
            let Some(length) = self.head()? else { break };
            let mut frame = vec![0; length as usize];
            self.file.read_exact(&mut frame).map_err(damaged)?;
            let piece = self.unpacker.decompress(&frame, PIECE_BYTES).map_err(damaged)?;
            bytes.extend_from_slice(&piece[self.skip.min(piece.len())..]);
            self.skip = 0;
        }
        Ok((!bytes.is_empty()).then_some((bytes, self)))
    }

    /// Returns the length of the next frame; `None` at the end of the file.
    fn head(&mut self) -> Result<Option<u32>> {
        let (mut head, mut length) = ([0; HEAD.len()], [0; 4]);
        if self.file.read(&mut head[..1])? == 0 {
            return Ok(None);
        }
        self.file.read_exact(&mut head[1..]).map_err(damaged)?;
        self.file.read_exact(&mut length).map_err(damaged)?;
        let length = u32::from_le_bytes(length);
        // The file may be untrusted.
        if head != HEAD || length as usize > compress_bound(PIECE_BYTES) {
            return Err(damaged("it is not a series of compressed pieces"));
        }
        Ok(Some(length))
    }
}

fn damaged(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}
