//! gzip files.

use archives::{Error, Form, Limits, MAX_OUTPUT, Unpacker};
use proptest::prelude::*;

use crate::pack::gzip;

fn unpack(packed: &[u8], piece: usize, limits: Limits) -> Result<Vec<u8>, Error> {
    let (mut all, mut unpack) = (Vec::new(), Unpacker::gzip(limits));
    for mut piece in packed.chunks(piece) {
        while !piece.is_empty() {
            let mut out = Vec::new();
            piece = &piece[unpack.push(piece, &mut out)?..];
            assert!(out.len() <= 2 * MAX_OUTPUT, "{}", out.len());
            all.extend(out);
        }
    }
    assert_eq!(unpack.packed(), packed.len() as u64);
    unpack.finish(&mut all)?;
    Ok(all)
}

#[test]
fn gzip_members_are_joined_and_damage_is_detected() {
    let packed = [gzip(b"TY  - JOUR\n"), gzip(b"ER  -\n")].concat();
    assert_eq!(Form::detect(&packed), Form::Gzip);
    for piece in [1, 7, 1_000] {
        assert_eq!(unpack(&packed, piece, Limits::default()).unwrap(), b"TY  - JOUR\nER  -\n");
    }
    for end in 1..gzip(b"TY  - JOUR\n").len() {
        assert!(unpack(&packed[..end], 5, Limits::default()).is_err(), "cut at {end}");
    }
    let mut bad = packed.clone();
    bad[15] ^= 1;
    assert!(unpack(&bad, 5, Limits::default()).is_err());
    assert!(unpack(&[packed, b"more".to_vec()].concat(), 5, Limits::default()).is_err());
}

#[test]
fn gzip_bomb_is_refused_with_bounded_output() {
    let packed = gzip(&vec![0; 64 << 20]);
    assert_eq!(unpack(&packed, 64 * 1024, Limits::default()).unwrap_err(), Error::Bomb { ratio: 250 });
    let limits = Limits { max_unpacked: 1 << 20, ..Limits::default() };
    assert_eq!(unpack(&packed, 64 * 1024, limits).unwrap_err(), Error::TooLarge { limit: 1 << 20 });
}

proptest! {
    #[test]
    fn output_is_independent_of_piece_size(bytes in prop::collection::vec(any::<u8>(), 0..2_000), piece in 1_usize..300) {
        prop_assert_eq!(unpack(&gzip(&bytes), piece, Limits::default()).unwrap(), bytes);
    }
}
