//! The stored data of a search stays bounded, and nothing remains at its end.

use std::collections::BTreeSet;

use dedup::{Admission, Claim, ClaimPartition, Release, Tokens};
use imports::queues::{EVENTS, SAGA, UPLOADS};
use imports::{JobState, SearchId};
use jiff::SignedDuration;
use messages::{AttemptId, Host, Token};
use saga::ReadDocuments;

use crate::world::{TWO_RECORDS, World};

#[tokio::test]
async fn ended_search_has_empty_outbox_and_no_expectations() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris", "c.ris"]).await;
    for index in 0..3 {
        world.upload(&announced, index, TWO_RECORDS).await;
    }
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    world.pass(std::time::Duration::from_secs(60)).await;
    let document = world
        .store()
        .load(&[announced.search_id], jiff::Timestamp::UNIX_EPOCH)
        .await
        .unwrap()
        .pop()
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(document.outbox, []);
    assert_eq!(document.content.expected, []);
    // The start, three files and three replies: at most one entry for each.
    assert!(document.content.processed.len() <= 7, "{:?}", document.content.processed);
    assert_eq!(tokens(&world, announced.search_id, None).await, BTreeSet::new());
}

#[tokio::test]
async fn ledger_item_holds_few_tokens_beyond_expected() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris", "c.ris"]).await;
    world.run().await;
    // The tokens of three files and the timeout.
    assert_eq!(awaited(&world, announced.search_id).await, 4);
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notified = world.take(&UPLOADS).await;
    for _ in 0..2 {
        world.deliver(&UPLOADS, &notified).await;
    }
    world.run().await;
    assert_eq!(awaited(&world, announced.search_id).await, 3);
}

/// Returns the number of messages that the ledger item of an idle search still admits and that would change it. The
/// number left by attempts is bounded.
async fn awaited(world: &World, search: SearchId) -> usize {
    let document = world.document(search).await.unwrap();
    let tokens = tokens(world, search, document.content.finished()).await;
    let is_awaited = |token: &&Token| match token.is_from_attempt() {
        true => document.content.expected.iter().any(|expected| expected.token == **token),
        false => !document.content.processed.iter().any(|processed| processed.token.as_ref() == Some(*token)),
    };
    let awaited = tokens.iter().filter(is_awaited).count();
    assert!(tokens.len() <= awaited + saga::Settings::default().max_leftover, "{tokens:?}");
    awaited
}

async fn tokens(world: &World, search: SearchId, supersedes: Option<AttemptId>) -> BTreeSet<Token> {
    let attempt = AttemptId::from_uuid(world.host.fresh_id());
    let (now, lease) = (world.host.now(), SignedDuration::from_secs(1));
    let claim = Claim { lease, supersedes, max_tokens: 0, ..contracts::sample::claim(search, attempt, now) };
    let answer = dedup::ledger::ask(world.store(), claim).await.unwrap().1;
    let Admission::Admitted(admitted) = answer else { panic!("busy") };
    let Tokens::Listed(tokens) = admitted.tokens else { panic!("there is a ledger") };
    let (fence, remove) = (admitted.fence, BTreeSet::new());
    let release = Release { partition: search, attempt, fence, remove, ended: false, until: None, now };
    assert!(world.store().release(&release).await.unwrap());
    tokens
}

#[tokio::test]
async fn only_event_queue_has_messages_after_end() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    for (queue, depth) in world.store().count_messages().await.unwrap() {
        let expected = u64::from(queue == EVENTS);
        assert_eq!(depth.total(), expected, "{}", queue.name());
    }
}

#[tokio::test]
async fn duplicate_after_document_expiry_changes_nothing() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let started = world.take(&SAGA).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    world.host.advance(std::time::Duration::from_secs(8 * 24 * 3_600));
    let now = messages::Host::now(world.host.as_ref());
    world.store().purge(now).await.unwrap();
    world.deliver(&SAGA, &started).await;
    let documents = world.store().load(&[announced.search_id], now).await.unwrap();
    assert!(matches!(documents[..], [Ok(None)]), "the search was not created again");
}
