//! The original text of a record.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use contracts::ManualHost;
use embedded::Store;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, StreamExt, TryStreamExt};
use http_api::router;
use imports::messages::ObjectRef;
use imports::objects::ObjectStream;
use imports::{ObjectFacts, ReadObject};
use messages::{Host, StoreError};
use service::SearchService;
use testing::search::study;
use tokio::sync::Semaphore;

use super::{api, get, imported, path_of, stored};
use crate::world::World;

/// An empty object store.
struct EmptyStore;

#[async_trait]
impl ReadObject for EmptyStore {
    async fn head(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<ObjectFacts>, StoreError> {
        Ok(None)
    }

    async fn open(&self, _: &ObjectRef, _: u64) -> Result<Option<ObjectStream>, StoreError> {
        Ok(None)
    }
}

#[tokio::test]
async fn study_is_shown_with_original_text() {
    let (world, _, path) = imported().await;
    let shown = get(&api(&world), &format!("{path}/studies/0-2")).await;
    assert_eq!(shown["study"]["title"], "Zweite Ärztestudie");
    let raw = shown["raw"].as_str().unwrap();
    assert!(raw.starts_with("TY  - JOUR\nTI  - Zweite Ärztestudie\nJO  - Gambling\nER  -"), "{raw:?}");
    assert!(!raw.contains("Bad") && shown["truncated"] == false, "{raw:?}");
    let unread = get(&api(&world), &format!("{path}/quarantine/0-3")).await;
    assert!(
        unread["raw"].as_str().unwrap().contains("TI  - Bad \u{1}\u{1}\u{1}\u{1}\u{1} title"),
        "{unread}"
    );
    assert_eq!(unread["unread"]["id"], "0-3");
}

/// Decodes with the encoding of the file, which the bytes of a record alone do not determine.
#[tokio::test]
async fn record_text_uses_file_encoding() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let text = "\u{FEFF}TY  - JOUR\nTI  - Состояние\nER  - \n\nTY  - JOUR\nTI  - Größe\nER  - \n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    world.upload_bytes(&announced, 0, bytes).await;
    world.run().await;
    let path = path_of(announced.search_id);
    let shown = get(&api(&world), &format!("{path}/studies/0-2")).await;
    let raw = shown["raw"].as_str().unwrap();
    assert!(raw.starts_with("TY  - JOUR\nTI  - Größe\nER  -"), "{raw:?}");
}

#[tokio::test]
async fn long_record_is_truncated() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let content = format!("TY  - JOUR\nTI  - x{}\nER  - \n", "ä".repeat(200_000));
    world.upload(&announced, 0, &content).await;
    world.run().await;
    let shown = get(&api(&world), &format!("{}/studies/0-1", path_of(announced.search_id))).await;
    let raw = shown["raw"].as_str().unwrap();
    assert_eq!(shown["truncated"], true);
    assert!(raw.len() <= 256 * 1024 && raw.len() > 256 * 1024 - 3, "{}", raw.len());
    assert!(raw.ends_with('ä'), "no character is cut");
}

#[tokio::test]
async fn unavailable_record_text_has_reason() {
    let (world, _, path) = imported().await;
    let gone = SearchService { objects: Arc::new(EmptyStore), ..world.functions.start_upload.clone() };
    for rest in ["studies/0-1", "quarantine/0-3"] {
        let shown = get(&router(gone.clone()), &format!("{path}/{rest}")).await;
        assert_eq!((&shown["raw"], &shown["raw_missing"]), (&().into(), &"the uploaded file is gone".into()));
    }
    let of_before = |search, file, record| imports::Study { bytes: None, ..study(search, file, record) };
    let search = stored(&world, of_before, 1).await;
    let shown = get(&api(&world), &format!("{}/studies/0-1", path_of(search))).await;
    assert_eq!((&shown["raw"], &shown["study"]["bytes"]), (&().into(), &().into()));
    assert!(shown["raw_missing"].as_str().unwrap().contains("earlier version"), "{shown}");
}

/// A store with slow packed files: opening waits for a permit, and each chunk of 64 bytes takes a second.
struct SlowFiles {
    store: Arc<Store>,
    host: Arc<ManualHost>,
    opening: Semaphore,
    /// The number of files that wait to be opened, and the highest number so far.
    waiting: AtomicUsize,
    max: AtomicUsize,
}

impl SlowFiles {
    fn of(world: &World, permits: usize) -> Arc<Self> {
        let (store, host) = (Arc::clone(&world.store), Arc::clone(&world.host));
        let opening = Semaphore::new(permits);
        Arc::new(Self { store, host, opening, waiting: AtomicUsize::new(0), max: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl ReadObject for SlowFiles {
    async fn head(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<ObjectFacts>, StoreError> {
        Ok(None)
    }

    async fn open(&self, object: &ObjectRef, from: u64) -> Result<Option<ObjectStream>, StoreError> {
        let waiting = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        self.max.fetch_max(waiting, Ordering::SeqCst);
        let permit = self.opening.acquire().await.unwrap();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        permit.forget();
        let Some(stream) = self.store.open(object, from).await? else { return Ok(None) };
        let host = Arc::clone(&self.host);
        let small = |piece: Vec<u8>| {
            let pieces: Vec<_> = piece.chunks(64).map(|chunk| Ok(chunk.to_vec())).collect();
            stream::iter(pieces)
        };
        let pieces = stream.map_ok(small).try_flatten();
        Ok(Some(pieces.inspect_ok(move |_| host.advance(Duration::from_secs(1))).boxed()))
    }
}

/// Imports a gzip file with the given number of different records; returns the path of its search.
async fn packed(world: &World, records: u32) -> String {
    let text: String = (0..records)
        .map(|number| format!("TY  - JOUR\nTI  - Title {:x}\nER  - \n\n", number.wrapping_mul(2_654_435_761)))
        .collect();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    let announced = world.announce(&["a.ris.gz"]).await;
    world.upload_bytes(&announced, 0, encoder.finish().unwrap()).await;
    world.run().await;
    path_of(announced.search_id)
}

#[tokio::test]
async fn text_deep_in_packed_file_is_refused() {
    let world = World::new();
    let path = packed(&world, 200).await;
    let objects = SlowFiles::of(&world, 100);
    let api = router(SearchService { objects, ..world.functions.start_upload.clone() });
    let shown = get(&api, &format!("{path}/studies/0-1")).await;
    assert!(shown["raw"].as_str().unwrap().contains("Title 0"), "{shown}");
    let shown = get(&api, &format!("{path}/studies/0-200")).await;
    assert!(shown["raw_missing"].as_str().unwrap().contains("unpack the file"), "{shown}");
    assert!(shown["study"]["title"].is_string(), "the study itself is shown");
}

#[tokio::test]
async fn packed_files_are_unpacked_by_one_request() {
    let world = World::new();
    let path = packed(&world, 2).await;
    let objects = SlowFiles::of(&world, 0);
    let api = router(SearchService { objects: objects.clone(), ..world.functions.start_upload.clone() });
    let study = format!("{path}/studies/0-1");
    let others = async {
        while objects.waiting.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // Waiting only moves the clock of the test.
        let begun_at = world.host.now();
        let (second, third) = tokio::join!(get(&api, &study), get(&api, &study));
        world.host.set(begun_at);
        for shown in [second, third] {
            assert!(shown["raw_missing"].as_str().unwrap().contains("try again"), "{shown}");
        }
        objects.opening.add_permits(100);
    };
    let (first, ()) = tokio::join!(get(&api, &study), others);
    assert!(first["raw"].as_str().unwrap().contains("Title 0"), "{first}");
    assert_eq!(objects.max.load(Ordering::SeqCst), 1);
}
