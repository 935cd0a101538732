//! Searching for words, with and without their index.

use imports::Study;
use imports::queues::{CONTROL, PARSE, SAGA, UPLOADS};
use references::Reference;
use saga::Upkeep;
use service::words::WordIndexing;
use testing::search::study;

use super::{all, api, ask, path_of, stored, titles};
use crate::world::{TWO_RECORDS, World};

/// Indexes all words, and returns the number of steps.
async fn index(world: &World) -> usize {
    let indexing = WordIndexing::over(&world.backend.ports).unwrap();
    let mut steps = 0;
    while indexing.step().await.unwrap() {
        steps += 1;
    }
    steps
}

/// Ten thousand studies are a part of the index.
#[tokio::test]
async fn index_does_not_change_results() {
    let world = World::new();
    let titled = |search, file, record| {
        let study = study(search, file, record);
        let title = match record {
            7 | 10_499 => "Rare störung, heart failure",
            8 => "Failure of the heart: rarely",
            _ => "Common disturbance",
        };
        let r#abstract = record.is_multiple_of(5_000).then(|| format!("Heart\nfailure {record}"));
        let reference = Reference { title: title.to_owned(), r#abstract, ..study.reference };
        Study { reference, ..study }
    };
    let search = stored(&world, titled, 10_500).await;
    let api = api(&world);
    let queries = [
        ("rare%20", 2),
        ("rare", 3),
        ("STORUNG", 2),
        ("%22heart%20failure%22", 4),
        ("heart%20failure", 5),
        ("failure%205000", 1),
        ("absent%20common", 0),
        ("%22", 0),
    ];
    let mut before: Vec<(Vec<serde_json::Value>, Vec<u8>)> = Vec::new();
    for is_indexed in [false, true] {
        for (at, (text, count)) in queries.into_iter().enumerate() {
            let (items, sizes) =
                all(&api, &format!("{}/studies?text={text}&limit=900", path_of(search))).await;
            assert_eq!(items.len(), count, "{text}");
            let project = uuid::Uuid::nil();
            let export = format!("/projects/{project}/export?search={search}&text={text}&studies=unique");
            let (_, _, exported) = ask(&api, &export, None).await;
            assert_eq!(exported.iter().filter(|byte| **byte == b'\n').count(), count, "{text}");
            if is_indexed {
                assert_eq!((&items, &exported), (&before[at].0, &before[at].1), "{text}");
                // A single page suffices, although as many studies are filtered out as two pages examined before.
                assert_eq!(sizes.len(), 1, "{text}");
            } else {
                before.push((items, exported));
            }
        }
        assert_eq!(index(&world).await, if is_indexed { 0 } else { 2 });
    }
}

/// Until then the parser has precedence.
#[tokio::test]
async fn file_is_indexed_after_it_was_marked() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA, &PARSE]).await;
    assert_eq!(index(&world).await, 0);
    world.run().await;
    assert_eq!(index(&world).await, 1);
    let (items, _) = all(&api(&world), &format!("{}/studies?text=sec", path_of(announced.search_id))).await;
    assert_eq!(titles(&items), ["Second"]);
}
