//! Both variants of the travel booking on SQLite, with duplicated messages and unreliable suppliers; and the outline of
//! the list of steps.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

mod lists;
mod world;

use std::path::Path;

use rstest::rstest;
use steps::ClientError;
use travel::{NEWS, News, TIME_TO_APPROVE, TripRequest, list};

use crate::world::World;

fn trip() -> TripRequest {
    TripRequest {
        traveller: "ann".to_owned(),
        flight: "LH 1".to_owned(),
        hotel: "Ritz".to_owned(),
        car: Some("Golf".to_owned()),
        cents: 400,
        needs_approval: false,
    }
}

#[rstest]
#[tokio::test]
async fn trip_is_booked_although_suppliers_fail(#[values("machine", "list")] variant: &str) {
    let world = World::new(variant).await;
    for _ in 0..2 {
        world.agency.request("4711", &trip()).await.unwrap();
    }
    let other = TripRequest { hotel: "Savoy".to_owned(), ..trip() };
    assert!(matches!(world.agency.request("4711", &other).await, Err(ClientError::Conflict)));
    world.settle().await;
    assert!(["booked", "completed"].contains(&world.state("4711").await.as_str()));
    assert_eq!(world.api.books().reserved("").count(), 3);
    assert_eq!(world.budget().await, 600);
    let ended = News::TripEnded { number: "4711".to_owned(), is_booked: true };
    assert_eq!(world.news().await, [ended], "each message was sent twice: {}", NEWS.name());
    assert!(matches!(world.agency.cancel("4711", "ann").await, Err(ClientError::Ended)));
}

#[rstest]
#[tokio::test]
async fn refused_part_releases_the_others(#[values("machine", "list")] variant: &str) {
    let world = World::new(variant).await;
    let request = TripRequest { hotel: "full".to_owned(), ..trip() };
    world.agency.request("4711", &request).await.unwrap();
    world.settle().await;
    assert!(["abandoned", "undone"].contains(&world.state("4711").await.as_str()));
    assert_eq!(world.api.books().reserved("").count(), 0);
    assert_eq!(world.budget().await, 1_000);
}

#[rstest]
#[tokio::test]
async fn dead_lettered_reservations_stop_the_trip(#[values("machine", "list")] variant: &str) {
    let world = World::new(variant).await;
    world.agency.request("4711", &trip()).await.unwrap();
    world.crash_suppliers().await;
    world.settle().await;
    assert!(["abandoned", "undone"].contains(&world.state("4711").await.as_str()));
    assert_eq!(world.api.books().reserved("").count(), 0);
    assert_eq!(world.budget().await, 1_000);
}

#[rstest]
#[tokio::test]
async fn trip_without_an_approval_is_abandoned(#[values("machine", "list")] variant: &str) {
    let world = World::new(variant).await;
    world.agency.request("4711", &TripRequest { needs_approval: true, ..trip() }).await.unwrap();
    world.settle().await;
    assert_eq!(world.api.books().reserved("").count(), 3);
    world.pass(TIME_TO_APPROVE.unsigned_abs()).await;
    world.settle().await;
    assert_eq!(world.api.books().reserved("").count(), 0);
    assert_eq!(world.budget().await, 1_000);
}

#[rstest]
#[tokio::test]
async fn approved_trip_is_booked(#[values("machine", "list")] variant: &str) {
    let world = World::new(variant).await;
    world.agency.request("4711", &TripRequest { needs_approval: true, ..trip() }).await.unwrap();
    world.agency.approve("4711", "bob").await.unwrap();
    world.settle().await;
    assert!(["booked", "completed"].contains(&world.state("4711").await.as_str()));
}

#[rstest]
#[tokio::test]
async fn invalid_requests_are_refused(#[values("machine", "list")] variant: &str) {
    let world = World::new(variant).await;
    let request = TripRequest { cents: 1_001, ..trip() };
    assert!(matches!(world.agency.request("4711", &request).await, Err(ClientError::Refused(_))));
    assert!(matches!(world.agency.cancel("4711", "ann").await, Err(ClientError::Unknown)));
    assert_eq!(world.budget().await, 1_000);
}

#[tokio::test]
async fn client_of_steps_checks_keys_and_signals() {
    let world = World::new("list").await;
    let client = list::agency(&world.ports.engine).unwrap();
    assert!(matches!(client.start("", &trip()).await, Err(ClientError::EmptyKey)));
    client.start("4711", &TripRequest { needs_approval: true, ..trip() }).await.unwrap();
    for step in ["flight", "payment"] {
        let signal = client.resolve("4711", step, true.into()).await;
        assert!(matches!(signal, Err(ClientError::UnknownStep(_))), "{step}");
    }
}

/// A change of the list that affects runs of an earlier version shows up in the file.
/// Readers copy the list from the page.
#[test]
fn documented_list_is_that_of_the_code() {
    let code = include_str!("../../src/list.rs");
    let page = include_str!("../../../../docs/steps.md");
    let documented = page.split("```").find_map(|part| part.strip_prefix("rust\nseq([")).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words(code).contains(&format!("seq([ {}", words(documented))),
        "docs/steps.md differs from list.rs"
    );
}

#[test]
fn outline_of_the_list_is_recorded() {
    let (file, outline) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/steps.txt"), list::trips().outline());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &outline).unwrap();
    }
    assert_eq!(outline, std::fs::read_to_string(file).unwrap_or_default());
}
