//! Builds archives, valid and hostile ones.

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};

/// An entry to pack.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) name: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) attributes: u32,
    pub(crate) says: Option<u32>,
    /// The offset that the directory states.
    pub(crate) at: Option<u32>,
}

pub(crate) fn file(name: &str, bytes: &[u8]) -> File {
    let name = name.as_bytes().to_vec();
    File { name, bytes: bytes.to_vec(), method: 8, flags: 0, attributes: 0, says: None, at: None }
}

/// An uncompressed entry. The compression ratio of such an archive is never limited, and building the archive is fast.
#[allow(dead_code, reason = "another test program uses it")]
pub(crate) fn stored(name: &str, bytes: &[u8]) -> File {
    File { method: 0, ..file(name, bytes) }
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Builds an archive of these files.
pub(crate) fn zip(files: &[File]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for file in files {
        let packed = if file.method == 8 { deflate(&file.bytes) } else { file.bytes.clone() };
        let size = file.says.unwrap_or(u32::try_from(file.bytes.len()).unwrap());
        let at = file.at.unwrap_or(u32::try_from(out.len()).unwrap());
        let mut same = Vec::new();
        for short in [20, file.flags, file.method, 0, 0] {
            same.extend_from_slice(&u16::to_le_bytes(short));
        }
        for long in [crc32fast::hash(&file.bytes), u32::try_from(packed.len()).unwrap(), size] {
            same.extend_from_slice(&u32::to_le_bytes(long));
        }
        same.extend_from_slice(&u16::try_from(file.name.len()).unwrap().to_le_bytes());
        same.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&[b"PK\x03\x04", same.as_slice(), &file.name, &packed].concat());
        list.extend_from_slice(&[b"PK\x01\x02\x14\x03".as_slice(), &same, &[0; 6]].concat());
        list.extend_from_slice(&file.attributes.to_le_bytes());
        list.extend_from_slice(&at.to_le_bytes());
        list.extend_from_slice(&file.name);
    }
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    let (start, length) = (u32::try_from(out.len()).unwrap(), u32::try_from(list.len()).unwrap());
    out.extend_from_slice(&list);
    out.extend_from_slice(&[b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count].concat());
    out.extend_from_slice(&[length.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend_from_slice(&[0, 0]);
    out
}
