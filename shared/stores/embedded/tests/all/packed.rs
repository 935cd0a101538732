//! A data directory stores compressed data and returns it unchanged; damage affects only the damaged records.

use contracts::sample;
use embedded::BUCKET;
use futures::TryStreamExt;
use imports::messages::ObjectRef;
use imports::{
    FileFence, FileId, Identity, ParseAttempts, ReadObject, ReadStudies, SearchId, Selection, Study,
    WriteStudies,
};
use messages::StoreError;
use references::{READER_VERSION, Reference};
use rusqlite::params;
use testing::search;

use crate::depot::{Depot, TestResult};

/// Three studies of a file, with abstracts that are worth packing.
async fn stored(depot: &Depot) -> Result<(SearchId, FileId, Vec<Study>), StoreError> {
    let (search_id, file_id) = (sample::partition(&*depot.host), search::file(&*depot.host));
    let fence = depot.store.start(search_id, file_id, READER_VERSION).await?.fence;
    let studies = (1..=3).map(|record| {
        let study = search::study(search_id, file_id, record);
        let text = (0..60).map(|n| format!("Sentence {n} of study {record} is about {}. ", n * record));
        Study { reference: Reference { r#abstract: Some(text.collect()), ..study.reference }, ..study }
    });
    let studies: Vec<_> = studies.collect();
    depot.store.store(&FileFence { search_id, file_id, fence }, studies.clone(), vec![]).await?;
    Ok((search_id, file_id, studies))
}

fn after(after: u64, limit: usize) -> Selection {
    Selection { marked: None, after, limit, bytes: usize::MAX }
}

/// A damage to stored bytes.
type Damage = fn(&mut Vec<u8>);

#[tokio::test]
async fn packed_study_is_smaller_and_round_trips() -> TestResult {
    let depot = Depot::new();
    let (search, file, studies) = stored(&depot).await?;
    let sql = "SELECT sum(length(study)), sum(length(packed)) FROM study";
    let (text, packed): (u32, u32) =
        depot.database().query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let said: usize =
        studies.iter().map(|study| study.reference.r#abstract.as_ref().map_or(0, String::len)).sum();
    assert!(text == 0 && packed as usize * 3 < said, "{said} bytes in {packed}, and {text} as text");
    assert_eq!(depot.store.select(search, file, after(0, 9)).await?, studies);
    // The length of the uncompressed texts bounds a page, however well they compress.
    let one = Selection { bytes: said / 4, ..after(0, 9) };
    assert_eq!(depot.store.select(search, file, one).await?, studies[..1]);
    Ok(())
}

#[tokio::test]
async fn damaged_study_is_named_others_are_read() -> TestResult {
    let depot = Depot::new();
    let (search, file, studies) = stored(&depot).await?;
    let damages: [(&str, Damage); 5] = [
        ("another byte", |bytes| bytes[100] ^= 1),
        ("another end", |bytes| *bytes.last_mut().unwrap() ^= 1),
        ("cut off", |bytes| bytes.truncate(50)),
        ("nothing left", Vec::clear),
        // The header of the frame claims 2^56 bytes.
        ("too long", |bytes| {
            *bytes = [&bytes[..4], &[0xe0], &[0, 0, 0, 0, 0, 0, 0, 1], &bytes[9..]].concat();
        }),
    ];
    let database = depot.database();
    let sound: Vec<u8> =
        database.query_row("SELECT packed FROM study WHERE record = 2", [], |row| row.get(0))?;
    for (what, damage) in damages {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        database.execute("UPDATE study SET packed = ?1 WHERE record = 2", [bytes])?;
        for selection in [after(0, 9), after(1, 1)] {
            let error = depot.store.select(search, file, selection).await.unwrap_err();
            assert!(
                !error.is_retryable() && error.chain().contains("study 2 cannot be read"),
                "{what}: {error:?}"
            );
        }
        assert_eq!(depot.store.select(search, file, after(0, 1)).await?, studies[..1], "{what}");
        assert_eq!(depot.store.select(search, file, after(2, 9)).await?, studies[2..], "{what}");
        // The other studies are still compared.
        let of = |study: &Study| Identity::of(study.record, &study.reference);
        let recognised = [of(&studies[0]), Identity { record: 2, ..Identity::default() }, of(&studies[2])];
        assert_eq!(depot.store.identities_of(search, file, &[1, 2, 3]).await?, recognised, "{what}");
        let keyed = depot.store.keyed(search, file, 0, 9).await?;
        assert!(keyed.iter().all(|study| study.keys.as_ref().is_some_and(|keys| !keys.is_empty())), "{what}");
        depot.store.finish(&search::parsed(search, file, 0)).await?;
    }
    database.execute("UPDATE study SET packed = ?1 WHERE record = 2", [sound])?;
    assert_eq!(depot.store.select(search, file, after(0, 9)).await?, studies);
    Ok(())
}

#[tokio::test]
async fn unpacked_and_packed_studies_are_readable() -> TestResult {
    let depot = Depot::new();
    let (search, file, studies) = stored(&depot).await?;
    let said = |study: &Study| {
        serde_json::json!({ "line": study.line, "reference": study.reference.sparse() }).to_string()
    };
    let sql = "UPDATE study SET study = ?1, packed = NULL WHERE record = 2";
    assert_eq!(depot.database().execute(sql, [said(&studies[1])])?, 1);
    // Packed, and without a dictionary.
    let packed = zstd::bulk::compress(said(&studies[2]).as_bytes(), 1)?;
    assert_eq!(depot.database().execute("UPDATE study SET packed = ?1 WHERE record = 3", [packed])?, 1);
    assert_eq!(depot.store.select(search, file, after(0, 9)).await?, studies);
    let identities = depot.store.identities_of(search, file, &[1, 2, 3]).await?;
    assert_eq!(
        identities,
        studies.iter().map(|study| Identity::of(study.record, &study.reference)).collect::<Vec<_>>()
    );
    // An object that is stored uncompressed.
    let name = "019b76da-a800-7000-8000-000005000001";
    std::fs::write(depot.folder.path().join("objects").join(name), b"TY  - JOUR")?;
    let sql = "INSERT INTO object (key, file, size_bytes, metadata) VALUES ('uploads/a', ?1, 10, '{}')";
    depot.database().execute(sql, params![name])?;
    assert_eq!(depot.read("uploads/a").await?, b"TY  - JOUR");
    assert_eq!(read_from(&depot, "uploads/a", 4).await?, b"- JOUR");
    Ok(())
}

async fn read_from(depot: &Depot, key: &str, from: u64) -> Result<Vec<u8>, StoreError> {
    let object = ObjectRef { bucket: BUCKET.into(), key: key.to_owned(), version: None, size_bytes: 0 };
    let stream = ReadObject::open(&depot.store, &object, from).await?.unwrap();
    stream.try_concat().await
}

/// Distinct lines that fill more than two pieces.
fn content() -> Vec<u8> {
    (0..40_000).flat_map(|n| format!("line {n}, {}\n", n * 7_919).into_bytes()).collect()
}

/// The one file in the folder of objects.
fn file(depot: &Depot) -> std::path::PathBuf {
    std::fs::read_dir(depot.folder.path().join("objects")).unwrap().next().unwrap().unwrap().path()
}

#[tokio::test]
async fn packed_object_is_readable_from_any_byte() -> TestResult {
    const PIECE: usize = 256 * 1024;
    let depot = Depot::new();
    let content = content();
    depot.upload("uploads/a", &content).await?;
    let room = std::fs::metadata(file(&depot))?.len() as usize;
    assert!(content.len() > 2 * PIECE && room * 2 < content.len(), "{} bytes in {room}", content.len());
    for from in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 5, content.len() - 1, content.len()] {
        assert!(read_from(&depot, "uploads/a", from as u64).await? == content[from..], "from byte {from}");
    }
    assert!(read_from(&depot, "uploads/a", 1 << 40).await?.is_empty());
    // Other programs can read it as well.
    assert!(zstd::stream::decode_all(std::fs::File::open(file(&depot))?)? == content);
    // Compressed input, and input that fills its pieces exactly.
    let mut bits = 1_u64;
    let noise: Vec<u8> = (0..2 * PIECE)
        .map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (bits >> 56) as u8
        })
        .collect();
    depot.upload("uploads/b", &noise).await?;
    assert!(depot.read("uploads/b").await? == noise);
    Ok(())
}

#[tokio::test]
async fn damaged_object_is_never_misread() -> TestResult {
    let depot = Depot::new();
    depot.upload("uploads/a", &content()).await?;
    let path = file(&depot);
    let sound = std::fs::read(&path)?;
    let damages: [(&str, Damage); 5] = [
        ("another byte", |bytes| bytes[1_000] ^= 1),
        ("another head", |bytes| bytes[3] ^= 1),
        ("another length", |bytes| bytes[11] = 0xff),
        ("cut off in a piece", |bytes| bytes.truncate(1_000)),
        ("cut off in a length", |bytes| bytes.truncate(2)),
    ];
    for (what, damage) in damages {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        std::fs::write(&path, bytes)?;
        let error = depot.read("uploads/a").await.unwrap_err();
        assert!(!error.is_retryable(), "{what}: {error:?}");
    }
    Ok(())
}
