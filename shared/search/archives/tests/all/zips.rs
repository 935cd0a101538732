//! ZIP archives.

use archives::{Directory, END_RECORD_BYTES, EndRecord, Error, Limits, Unpacker, local_header};

use crate::pack::{File, file, zip};

fn open(archive: &[u8], limits: &Limits) -> Result<(Directory, EndRecord), Error> {
    let last = &archive[archive.len().saturating_sub(END_RECORD_BYTES)..];
    let tail = EndRecord::find(last, archive.len() as u64)?;
    let start = usize::try_from(tail.start).unwrap();
    Ok((Directory::read(&archive[start..start + tail.length], &tail, limits)?, tail))
}

/// Unpacks a whole archive.
pub(crate) fn unpack(archive: &[u8], limits: &Limits) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let (directory, tail) = open(archive, limits)?;
    let mut all = Vec::new();
    for (at, entry) in directory.entries.iter().enumerate() {
        let start = usize::try_from(entry.header).unwrap();
        let before = local_header(&archive[start..], entry, directory.next_offset(at, &tail))?;
        let start = start + usize::try_from(before).unwrap();
        let packed = &archive[start..start + usize::try_from(entry.packed).unwrap()];
        let (mut out, mut unpack) = (Vec::new(), Unpacker::entry(entry.clone(), *limits));
        for mut piece in packed.chunks(7) {
            while !piece.is_empty() {
                piece = &piece[unpack.push(piece, &mut out)?..];
            }
        }
        unpack.finish(&mut out)?;
        all.push((entry.name.clone(), out));
    }
    Ok(all)
}

fn refused(files: &[File]) -> Error {
    unpack(&zip(files), &Limits::default()).unwrap_err()
}

#[test]
fn files_are_unpacked_and_folders_omitted() {
    let long = "TY  - JOUR\nTI  - a\nER  -\n".repeat(1_000);
    let folder = File { method: 0, attributes: 0o040_755 << 16, ..file("exports/", b"") };
    let stored = File { method: 0, attributes: 0o100_644 << 16, ..file("exports/ä.ris", b"stored") };
    let archive = zip(&[folder, file("a.ris", long.as_bytes()), stored, file("empty.txt", b"")]);
    let named = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
    let all = [named("a.ris", long.as_bytes()), named("exports/ä.ris", b"stored"), named("empty.txt", b"")];
    assert_eq!(unpack(&archive, &Limits::default()).unwrap(), all);
}

#[test]
fn hostile_entries_are_refused_by_name() {
    for name in ["../a.ris", "/etc/passwd", "a/../../b", "C:\\a.ris", "a\\b", "a\nb", "", "a\0.ris"] {
        assert!(matches!(refused(&[file(name, b"a")]), Error::Escapes { .. }), "{name:?}");
    }
    assert!(matches!(refused(&[file(&"a".repeat(256), b"a")]), Error::LongName { limit: 255, .. }));
    let link = File { attributes: 0o120_777 << 16, ..file("a.ris", b"/etc/passwd") };
    assert!(matches!(refused(&[link]), Error::Link { .. }));
    let encrypted = File { flags: 1, ..file("a.ris", b"a") };
    let said = refused(&[encrypted]).to_string();
    assert_eq!(said, "\"a.ris\" in the archive is protected by a password; pack it without one");
    let other = File { method: 9, ..file("a.ris", b"a") };
    assert!(matches!(refused(&[other]), Error::Method { method: 9, .. }));
    assert!(matches!(refused(&[file("a", b"a"), file("a", b"b")]), Error::Overlap { .. }));
    let again = File { at: Some(0), ..file("b", b"a") };
    assert!(matches!(refused(&[file("a", b"a"), again]), Error::Overlap { .. }));
}

#[test]
fn bombs_are_refused_by_declared_and_actual_size() {
    let zeros = vec![b'0'; 16 << 20];
    assert_eq!(refused(&[file("a", &zeros)]), Error::Bomb { ratio: 250 });
    let lies = File { says: Some(10), ..file("a", &zeros) };
    assert!(matches!(refused(&[lies]), Error::Damaged { .. }));
    let limits = Limits { max_unpacked: 10, ..Limits::default() };
    let large = |archive: &[File]| unpack(&zip(archive), &limits).unwrap_err();
    assert_eq!(large(&[file("a", b"123456"), file("b", b"123456")]), Error::TooLarge { limit: 10 });
    let many: Vec<File> = (0..1_001).map(|n| file(&n.to_string(), b"")).collect();
    assert_eq!(refused(&many), Error::TooManyEntries { limit: 1_000 });
}

#[test]
fn damage_is_detected_or_without_effect() {
    let archive = zip(&[file("a.ris", b"TY  - JOUR\nER  -\n"), file("b.ris", &[b'x'; 500])]);
    let good = unpack(&archive, &Limits::default()).unwrap();
    for at in 0..archive.len() {
        for change in [1, 0x80] {
            let mut bad = archive.clone();
            bad[at] ^= change;
            if let Ok(read) = unpack(&bad, &Limits::default()) {
                let bytes =
                    |all: &[(String, Vec<u8>)]| all.iter().map(|one| one.1.clone()).collect::<Vec<_>>();
                assert_eq!(bytes(&read), bytes(&good), "byte {at}");
            }
        }
        assert!(unpack(&archive[..at], &Limits::default()).is_err(), "cut at {at}");
    }
}
