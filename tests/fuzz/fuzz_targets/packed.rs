//! Arbitrary bytes as an archive, a workbook and a gzip file: the output is bounded, and nothing panics.

#![no_main]

use archives::{Directory, END_RECORD_BYTES, EndRecord, Limits, Unpacker, Workbook, local_header};

const LIMITS: Limits = Limits { max_unpacked: 8 << 20, max_entries: 100, max_ratio: 250 };

/// Unpacks as much as possible.
fn unpack(mut unpack: Unpacker, packed: &[u8]) -> Option<()> {
    let (mut rest, mut made) = (packed, 0);
    while !rest.is_empty() {
        let mut out = Vec::new();
        let taken = unpack.push(rest, &mut out).ok()?;
        assert!(taken > 0 && taken <= rest.len() && out.len() <= 2 * archives::MAX_OUTPUT);
        rest = &rest[taken..];
        made += out.len() as u64;
        assert!(made <= LIMITS.max_unpacked);
    }
    unpack.finish(&mut Vec::new()).ok()
}

fn zip(file: &[u8]) -> Option<()> {
    let last = &file[file.len().saturating_sub(END_RECORD_BYTES)..];
    let tail = EndRecord::find(last, file.len() as u64).ok()?;
    let start = usize::try_from(tail.start).ok()?;
    let directory = Directory::read(file.get(start..start + tail.length)?, &tail, &LIMITS).ok()?;
    for (at, entry) in directory.entries.iter().enumerate() {
        let start = usize::try_from(entry.header).ok()?;
        let Ok(before) = local_header(file.get(start..)?, entry, directory.next_offset(at, &tail)) else {
            continue;
        };
        let start = start + usize::try_from(before).ok()?;
        let packed = &file[start..start + usize::try_from(entry.packed).ok()?];
        unpack(Unpacker::entry(entry.clone(), LIMITS), packed);
    }
    let book = Workbook::open(file.into(), LIMITS).ok()?;
    for at in 0..book.sheets().len() {
        let Ok(Some(mut text)) = book.text(at) else { continue };
        let mut out = Vec::new();
        while text.next_piece(&mut out).unwrap_or(false) {
            out.clear();
        }
    }
    Some(())
}

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    unpack(Unpacker::gzip(LIMITS), file);
    zip(file);
});
