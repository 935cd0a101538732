//! Archives of test files.

/// Returns the checksum of an archive's entry.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
            },
        )
    })
}

/// Returns an uncompressed archive of these files.
pub(crate) fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut entries) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let (at, size) = (u32::try_from(out.len()).unwrap(), u32::try_from(content.len()).unwrap());
        let mut same = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        [crc32(content), size, size].iter().for_each(|number| same.extend(number.to_le_bytes()));
        same.extend([u8::try_from(name.len()).unwrap(), 0, 0, 0]);
        out.extend([b"PK\x03\x04", same.as_slice(), name.as_bytes(), content].concat());
        entries.extend(
            [b"PK\x01\x02\x14\0", same.as_slice(), &[0; 10], &at.to_le_bytes(), name.as_bytes()].concat(),
        );
    }
    let count = u8::try_from(files.len()).unwrap();
    let (start, length) = (u32::try_from(out.len()).unwrap(), u32::try_from(entries.len()).unwrap());
    out.extend(entries);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, 0, count, 0]);
    out.extend([length.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}
