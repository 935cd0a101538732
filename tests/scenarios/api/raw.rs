//! The text that a record was read from.

use std::sync::Arc;

use async_trait::async_trait;
use functions::start_upload::StartUpload;
use functions::start_upload::http::router;
use imports::messages::ObjectRef;
use imports::objects::ObjectStream;
use imports::{ObjectFacts, ReadObject};
use messages::StoreError;
use testing::sample::search::study;

use super::{api, get, imported, path_of, stored};
use crate::world::World;

/// A store from which everything is gone.
struct Empty;

#[async_trait]
impl ReadObject for Empty {
    async fn head(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<ObjectFacts>, StoreError> {
        Ok(None)
    }

    async fn open(&self, _: &ObjectRef, _: u64) -> Result<Option<ObjectStream>, StoreError> {
        Ok(None)
    }
}

#[tokio::test]
async fn a_study_is_shown_with_the_text_that_it_was_read_from() {
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

/// By the encoding of the file: bytes alone do not tell.
#[tokio::test]
async fn a_text_is_decoded_as_it_was_read() {
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
async fn of_a_long_record_the_beginning_is_shown() {
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
async fn a_text_that_cannot_be_shown_says_why() {
    let (world, _, path) = imported().await;
    let gone = StartUpload { objects: Arc::new(Empty), ..world.functions.start_upload.clone() };
    for rest in ["studies/0-1", "quarantine/0-3"] {
        let shown = get(&router(gone.clone()), &format!("{path}/{rest}")).await;
        assert_eq!((&shown["raw"], &shown["raw_missing"]), (&().into(), &"the uploaded file is gone".into()));
    }
    let of_before = |search, file, record| imports::Study { bytes: None, ..study(search, file, record) };
    let search = stored(&world, of_before, 1).await;
    let shown = get(&api(&world), &format!("{}/studies/0-1", path_of(search))).await;
    assert_eq!((&shown["raw"], &shown["study"]["bytes"]), (&().into(), &().into()));
    assert!(shown["raw_missing"].as_str().unwrap().contains("earlier release"), "{shown}");
}
