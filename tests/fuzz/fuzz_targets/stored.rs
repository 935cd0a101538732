//! Arbitrary bytes as a study and as an object that the embedded store has compressed: what is read is bounded, nothing
//! panics, and damaged bytes never become another text.

#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

use frames::{Frames, PIECE_BYTES};
use packed::{StoredText, Unpacker};

#[allow(dead_code, reason = "a part of the adapter")]
#[path = "../../../shared/stores/embedded/src/search/frames.rs"]
mod frames;
#[allow(dead_code, reason = "a part of the adapter")]
#[path = "../../../shared/stores/embedded/src/search/packed.rs"]
mod packed;

/// The longest text that is read.
const MAX_BYTES: usize = 64 << 20;
/// The beginning of a frame with the dictionary: the magic number, the descriptor and the number of the dictionary.
const HEADER: [u8; 7] = [40, 181, 47, 253, 38, 0, 128];
/// The number of pieces that are read at once.
const PIECES: usize = 2;

/// The first piece of each object, with its frame. Compressing this piece for each input would take most of the time.
static FIRST: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let piece: Vec<u8> = (0..=250).cycle().take(PIECE_BYTES).collect();
    let frame = frames::pack(&piece).unwrap_or_default();
    (piece, frame)
});

/// Reads a frame twice with the same reader.
fn study(frame: &[u8]) {
    let mut unpacker = Unpacker::default();
    if let Ok(text) = unpacker.unpack(frame) {
        assert!(text.len() <= MAX_BYTES);
        assert_eq!(unpacker.unpack(frame).ok(), Some(text));
    }
}

/// Changes a byte of a compressed text. The first two bytes of the input determine the position and the change.
fn damaged_study(input: &[u8]) {
    let [place, change, text @ ..] = input else { return };
    let text = String::from_utf8_lossy(text).into_owned();
    let Ok(StoredText::Packed(mut frame)) = packed::pack(text.clone()) else { return };
    let mut unpacker = Unpacker::default();
    assert_eq!(unpacker.unpack(&frame).ok().as_ref(), Some(&text));
    let place = usize::from(*place) * frame.len() / 256;
    frame[place] ^= change;
    if let Ok(read) = unpacker.unpack(&frame) {
        assert_eq!(read, text);
    }
    assert_eq!(unpacker.unpack(&frame[..place]).ok(), None);
}

/// Returns the bytes of an object from an offset, up to the first damage.
fn read(file: &[u8], from: u64) -> (Vec<u8>, bool) {
    let mut whole = Vec::new();
    let mut next = Frames::open(Cursor::new(file), from).and_then(|frames| frames.next(PIECES));
    loop {
        match next {
            Ok(Some((bytes, frames))) => {
                assert!(!bytes.is_empty() && bytes.len() <= PIECES * PIECE_BYTES);
                whole.extend(bytes);
                next = frames.next(PIECES);
            }
            Ok(None) => return (whole, true),
            Err(_) => return (whole, false),
        }
    }
}

/// Reads an object of two pieces from an offset, and again with a changed byte.
fn object(input: &[u8]) {
    let [far, near, change, rest @ ..] = input else { return };
    if rest.is_empty() {
        return;
    }
    let Ok(last) = frames::pack(rest) else { return };
    let (piece, frame) = &*FIRST;
    let content = [piece, rest].concat();
    let mut file = [frame.as_slice(), &last].concat();
    let from = (usize::from(*far) * PIECE_BYTES / 128 + usize::from(*near)).min(content.len());
    let from_there = u64::try_from(from).unwrap_or(u64::MAX);
    assert_eq!(read(&file, from_there), (content[from..].to_vec(), true));
    let place = usize::from(*near) * file.len() / 256;
    file[place] ^= change;
    let (found, _) = read(&file, from_there);
    assert!(content[from..].starts_with(&found));
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    match choice % 5 {
        0 => study(bytes),
        1 => study(&[&HEADER, bytes].concat()),
        2 => damaged_study(bytes),
        3 => object(bytes),
        _ => {
            let from = u64::from(bytes.first().copied().unwrap_or_default()) << 12;
            read(bytes.get(1..).unwrap_or_default(), from);
        }
    }
});
