//! Saga documents beyond the contract suite: batches, races, expiry and foreign data.

use backend::SystemHost;
use contracts::{outboxes, sample};
use futures::future::join;
use imports::{ReadProgress, ReadStudies};
use jiff::{SignedDuration, Timestamp};
use messages::{Host, PartitionKey};
use mongo::collections;
use mongodb::bson::{Binary, Bson, doc, spec::BinarySubtype};
use outbox::{
    Entry, InspectOutbox, Key, OutboxRecord, Owner, ReadRecords, ReadViews, SettleSessions, Settlement,
    SweepOutbox, Unreadable, UnreadableAction, View, WriteViews,
};
use saga::{Persist, PersistOutcome, ReadDocuments, WriteDocuments};

use super::{Scratch, Setup, TestResult};

const HOST: &SystemHost = &SystemHost;

fn create(name: &str) -> Persist {
    sample::persist(sample::partition(HOST), None, sample::content(HOST, name))
}

fn next(write: &Persist, loaded: u64) -> Persist {
    sample::persist(write.partition, Some(loaded), sample::content(HOST, "next"))
}

fn uuid(id: uuid::Uuid) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

#[tokio::test]
async fn batch_of_ten_takes_one_command_per_step() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let mut writes: Vec<Persist> = (0..10).map(|n| create(&format!("partition {n}"))).collect();
    for write in &mut writes {
        write.add = vec![sample::entry(HOST, write.partition, now)?];
    }
    let partitions: Vec<_> = writes.iter().map(|write| write.partition).collect();
    scratch.commands();
    assert_eq!(scratch.mongo.persist(&writes, now).await?, [PersistOutcome::Stored; 10]);
    assert_eq!(scratch.commands(), ["update"]);
    let stored = scratch.mongo.load(&partitions, now).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!((stored.iter().flatten().count(), scratch.commands()), (10, vec!["find".to_owned()]));
    let settlements: Vec<_> = writes
        .iter()
        .map(|write| {
            let done = |entry: &Entry| Settlement { id: entry.id, claim: None, keep: None };
            (write.partition, write.add.iter().map(done).collect::<Vec<_>>())
        })
        .collect();
    scratch.mongo.settle(&settlements).await?;
    assert_eq!(scratch.commands(), ["update"]);
    let updates: Vec<_> = writes.iter().map(|write| next(write, 1)).collect();
    assert_eq!(scratch.mongo.persist(&updates, now).await?, [PersistOutcome::Stored; 10]);
    assert_eq!(scratch.commands(), ["update"]);
    scratch.end().await
}

/// The server returns only the total, so the documents are read again in this case only.
#[tokio::test]
async fn conflicting_updates_of_batch_are_identified() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let (one, two, three, new) = (create("one"), create("two"), create("three"), create("new"));
    scratch.mongo.persist(&[one.clone(), two.clone(), three.clone()], now).await?;
    scratch.mongo.persist(&[next(&two, 1)], now).await?;
    scratch.commands();
    let writes = [next(&one, 1), next(&two, 1), new.clone(), next(&three, 1), one.clone()];
    let answers = scratch.mongo.persist(&writes, now).await?;
    use PersistOutcome::{Conflict, Stored};
    assert_eq!(answers, [Stored, Conflict, Stored, Stored, Conflict]);
    assert_eq!(scratch.commands(), ["update", "find"]);
    let found = scratch.mongo.load(&[one.partition, two.partition, new.partition], now).await?;
    let versions: Vec<_> =
        found.iter().map(|loaded| loaded.as_ref().unwrap().as_ref().map(|it| it.version)).collect();
    assert_eq!(versions, [Some(2), Some(2), Some(1)]);
    scratch.end().await
}

/// A deposed primary responds this way although its successor may have made the write. If this counted as a conflict,
/// the attempt would return tokens that its document expects.
#[tokio::test]
async fn earlier_version_shows_no_conflict() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let (one, two) = (create("one"), create("two"));
    scratch.mongo.persist(&[one.clone(), two.clone()], now).await?;
    let absent = create("never stored");
    for undecided in [next(&two, 7), next(&absent, 1)] {
        let loaded = scratch.mongo.load(&[one.partition], now).await?.remove(0)?.unwrap().version;
        let write = next(&one, loaded);
        let error = scratch.mongo.persist(&[write.clone(), undecided.clone()], now).await.unwrap_err();
        let text = error.chain();
        assert!(error.is_retryable() && text.contains(&undecided.partition.to_string()), "{text}");
        let found = scratch.mongo.load(&[one.partition], now).await?.remove(0)?.unwrap();
        assert_eq!(found.content.attempt, write.content.attempt, "the other one is stored, and says so");
    }
    scratch.end().await
}

#[tokio::test]
async fn concurrent_creation_of_partition_has_one_winner() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    for _ in 0..50 {
        let first = create("first");
        let second = Persist { content: sample::content(HOST, "second"), ..first.clone() };
        scratch.commands();
        let both = join(
            scratch.mongo.persist(std::slice::from_ref(&first), now),
            scratch.mongo.persist(std::slice::from_ref(&second), now),
        );
        let (one, two) = both.await;
        let (one, two) = (one?, two?);
        assert_eq!(
            scratch.commands(),
            ["update", "update"],
            "the response to the write itself shows the conflict"
        );
        let winner = match (one.as_slice(), two.as_slice()) {
            ([PersistOutcome::Stored], [PersistOutcome::Conflict]) => first,
            ([PersistOutcome::Conflict], [PersistOutcome::Stored]) => second,
            answers => panic!("{answers:?}"),
        };
        let stored = scratch.mongo.load(&[winner.partition], now).await?.remove(0)?.unwrap();
        assert_eq!((stored.version, stored.content), (1, winner.content));
    }
    scratch.end().await
}

/// A revision that loses the race to insert is compared with the winner rather than dropped.
#[tokio::test]
async fn concurrent_first_view_writes_keep_later_revision() -> TestResult {
    let scratch = Scratch::new().await?;
    for _ in 0..50 {
        let partition = sample::partition(HOST);
        let view = |revision| vec![sample::view(HOST, partition, revision, false)];
        let (early, late) = (view(1), view(2));
        let (one, two) = join(scratch.mongo.write(&early), scratch.mongo.write(&late)).await;
        one.and(two)?;
        assert_eq!(scratch.mongo.view(partition).await?.map(|view| view.revision), Some(2));
    }
    scratch.end().await
}

#[tokio::test]
async fn text_like_expression_is_stored_unchanged() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    for text in ["$$ROOT", "$Outbox", "{\"$literal\": 1}", "a.b$c\u{0}d"] {
        let mut write = create(text);
        let entry = Entry { payload: text.to_owned(), ..sample::entry(HOST, write.partition, now)? };
        write.add = vec![entry.clone()];
        scratch.mongo.persist(std::slice::from_ref(&write), now).await?;
        let failed = Entry { error: Some(text.to_owned()), attempts: 1, ..entry.clone() };
        let settlement = Settlement { id: entry.id, claim: None, keep: Some(failed.clone()) };
        scratch.mongo.settle(&[(write.partition, vec![settlement])]).await?;
        let stored = scratch.mongo.load(&[write.partition], now).await?.remove(0)?.unwrap();
        assert_eq!((stored.content, stored.outbox), (write.content, vec![failed]));
        let body = serde_json::json!({ "name": text, "$$ROOT": text });
        let view = View { body, ..sample::view(HOST, write.partition, 1, false) };
        scratch.mongo.write(std::slice::from_ref(&view)).await?;
        assert_eq!(scratch.mongo.view(view.partition).await?, Some(view));
    }
    scratch.end().await
}

/// A claim is identified by its exact end, which MongoDB's dates would truncate.
#[tokio::test]
async fn claim_is_identified_to_the_nanosecond() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = Timestamp::from_nanosecond(1_767_225_600_123_456_789)?;
    let mut write = create("nanoseconds");
    write.add = vec![sample::entry(HOST, write.partition, now)?];
    scratch.mongo.persist(std::slice::from_ref(&write), now).await?;
    let (sweep, owner) = (scratch.mongo.saga_outbox(), Owner::Saga(write.partition));
    let just = |nanos| now.checked_add(SignedDuration::from_nanos(nanos)).unwrap();
    assert_eq!(outboxes::claim(&sweep, owner, just(-1), just(300)).await?, [], "a nanosecond early");
    let claimed = outboxes::claim(&sweep, owner, now, just(300)).await?;
    let settle = |claim| Settlement { id: claimed[0].id, claim: Some(claim), keep: None };
    let outbox = async || -> Result<Vec<Entry>, messages::StoreError> {
        Ok(scratch.mongo.load(&[write.partition], now).await?.remove(0)?.unwrap().outbox)
    };
    assert_eq!(outbox().await?, claimed, "the claim is loaded as it was given");
    for wrong in [just(299), just(301)] {
        outboxes::settle(&sweep, owner, &[settle(wrong)]).await?;
        assert_eq!(outbox().await?.len(), 1);
    }
    outboxes::settle(&sweep, owner, &[settle(just(300))]).await?;
    assert_eq!(outbox().await?, []);
    scratch.end().await
}

/// An expired document counts as absent and must not block the write, but its outbox is kept.
#[tokio::test]
async fn creating_write_replaces_expired_document_keeping_outbox() -> TestResult {
    // The index is missing, so that the server deletes nothing during the test.
    let setup = Setup { indexed: false, ..Setup::default() };
    let scratch = Scratch::with(&servers::mongo::uri(), setup).await?;
    let ended = Timestamp::from_nanosecond(1_767_225_600_000_000_001)?;
    let mut write = create("first life");
    write.content = sample::ended(HOST, ended);
    write.add = vec![Entry { poisoned: true, ..sample::entry(HOST, write.partition, ended)? }];
    scratch.mongo.persist(std::slice::from_ref(&write), ended).await?;
    let again = Persist {
        content: sample::content(HOST, "second life"),
        add: vec![sample::entry(HOST, write.partition, ended)?],
        ..write.clone()
    };
    let expiry = ended.checked_add(scratch.settings.saga_retention)?;
    let early = scratch.mongo.persist(std::slice::from_ref(&again), expiry).await?;
    assert_eq!(early, [PersistOutcome::Conflict], "less than a millisecond early by the stored date");
    assert!(
        scratch.mongo.load(&[write.partition], expiry).await?.remove(0)?.is_some(),
        "so it is still there"
    );
    let later = expiry.checked_add(SignedDuration::from_millis(1))?;
    assert_eq!(scratch.mongo.load(&[write.partition], later).await?.remove(0)?, None);
    assert_eq!(scratch.mongo.persist(std::slice::from_ref(&again), later).await?, [PersistOutcome::Stored]);
    let stored = scratch.mongo.load(&[write.partition], later).await?.remove(0)?.unwrap();
    assert_eq!((stored.version, &stored.content), (1, &again.content));
    assert_eq!(stored.outbox, [write.add, again.add].concat());
    let raw = scratch.collection(collections::SAGA).find_one(doc! {}).await?.unwrap();
    assert!(!raw.contains_key("CompletedAt"), "it has not ended again: {raw}");
    scratch.end().await
}

/// The state of another version and a foreign document do not affect others, neither on load nor on store.
#[tokio::test]
async fn unreadable_document_does_not_block_others() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let (good, foreign, odd) = (create("good"), create("foreign"), create("odd"));
    scratch.mongo.persist(&[good.clone(), foreign.clone(), odd.clone()], now).await?;
    let sagas = scratch.collection(collections::SAGA);
    let by_id = |write: &Persist| doc! { "_id": uuid(write.partition.as_uuid()) };
    sagas.update_one(by_id(&foreign), doc! { "$set": { "Content": { "status": "PROCESSING" } } }).await?;
    sagas.update_one(by_id(&odd), doc! { "$set": { "Outbox": { "type": "Kafka" } } }).await?;
    let partitions = [foreign.partition, good.partition, odd.partition, foreign.partition];
    let loaded = scratch.mongo.load(&partitions, now).await?;
    assert_eq!(loaded[1].as_ref().unwrap().as_ref().unwrap().content, good.content);
    for (place, partition) in [(0, foreign.partition), (2, odd.partition), (3, foreign.partition)] {
        let error = loaded[place].as_ref().unwrap_err();
        let text = error.chain();
        assert!(!error.is_retryable() && text.contains(&partition.to_string()), "{text}");
    }
    // One of three updates matches, so the documents show which one.
    let writes = [next(&foreign, 0), next(&good, 1), next(&odd, 0)];
    use PersistOutcome::{Conflict, Stored};
    assert_eq!(scratch.mongo.persist(&writes, now).await?, [Conflict, Stored, Conflict]);
    scratch.end().await
}

#[tokio::test]
async fn foreign_data_is_rejected_by_name() -> TestResult {
    let scratch = Scratch::new().await?;
    let id = HOST.fresh_id();
    for name in collections::ALL {
        let foreign = doc! { "_id": uuid(id), "ReadyAt": 1_i64, "Outbox": [{ "type": "Kafka" }], "Ended": false, "CreatedAt": 1_i64 };
        let mut foreign = foreign;
        foreign
            .extend(doc! { "SearchId": uuid(id), "FileId": uuid(id), "Record": 1_i64, "Files": { "a": 1 } });
        scratch.collection(name).insert_one(foreign).await?;
    }
    let (partition, session) = (PartitionKey::from_uuid(id), messages::SessionId::from_uuid(id));
    let of_application = doc! { "_id": format!("sample/{id}"), "Revision": "first" };
    scratch.collection(collections::RECORD).insert_one(of_application).await?;
    let (now, file) = (HOST.now(), imports::FileId::from_uuid(id));
    let errors = [
        (collections::SAGA, scratch.mongo.load(&[partition], now).await?.remove(0).err()),
        (collections::VIEW, scratch.mongo.view(partition).await.err()),
        (collections::VIEW, scratch.mongo.unfinished().await.err()),
        (collections::PROGRESS, scratch.mongo.progress(partition).await.err()),
        (collections::STUDY, scratch.mongo.studies(partition, file, 0, 10).await.err()),
        (collections::QUARANTINE, scratch.mongo.quarantined(partition, file, 0, 10).await.err()),
        (collections::FILE, scratch.mongo.parsed(partition).await.err()),
        (collections::SESSION, scratch.mongo.find(session).await.err()),
        (collections::SESSION, scratch.mongo.abandon(session, now).await.err()),
        (collections::RECORD, scratch.mongo.record(&Key::new("sample", id.to_string())).await.err()),
    ];
    for (name, error) in errors {
        let error = error.unwrap_or_else(|| panic!("{name} was understood"));
        let text = error.chain();
        assert!(!error.is_retryable(), "{text}");
        assert!(text.contains(name) && text.contains(&id.to_string()), "{text}");
    }
    scratch.end().await
}

/// An unreadable entry that was just requeued, and has not been processed again, is not listed.
#[tokio::test]
async fn unreadable_requeued_entry_is_not_listed() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let mut write = create("good");
    write.add = vec![Entry { poisoned: true, ..sample::entry(HOST, write.partition, now)? }];
    scratch.mongo.persist(std::slice::from_ref(&write), now).await?;
    let odd = doc! { "$push": { "Outbox": { "id": 7, "poisoned": true } } };
    let by_id = doc! { "_id": uuid(write.partition.as_uuid()) };
    scratch.collection(collections::SAGA).update_one(by_id, odd).await?;
    let sweep = scratch.mongo.saga_outbox();
    let both = sweep.poisoned(None, 10).await?.remove(0).entries;
    let [Ok(_), Err(Unreadable { place, .. })] = both.as_slice() else { panic!("{both:?}") };
    sweep.resolve_unreadable(place, &UnreadableAction::Requeue(now)).await?;
    assert_eq!(sweep.poisoned(None, 10).await?.remove(0).entries, both[..1]);
    scratch.end().await
}

/// The entries of such a record cannot be claimed, so all are exhausted together. They are listed and can be deleted.
#[tokio::test]
async fn record_with_unreadable_id_does_not_hide_others() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let mut write = create("good");
    write.add = vec![sample::entry(HOST, write.partition, now)?];
    scratch.mongo.persist(std::slice::from_ref(&write), now).await?;
    let odd = doc! { "_id": "not ours", "ReadyAt": 1_i64, "OutboxRecord": 1, "Outbox": [{ "id": 7, "ready_at": 1_i64 }] };
    scratch.collection(collections::SAGA).insert_one(odd).await?;
    let (sweep, good) = (scratch.mongo.saga_outbox(), Owner::Saga(write.partition));
    let due = sweep.due(now, 10).await?;
    let [Err(Unreadable { place, why }), Ok(found)] = due.as_slice() else { panic!("{due:?}") };
    assert!(why.contains("pmSearchImportJobState") && why.contains("not ours"), "{why}");
    assert_eq!(*found, good);
    sweep.resolve_unreadable(place, &UnreadableAction::Poison(why.clone())).await?;
    assert_eq!(sweep.due(now, 10).await?, [Ok(good)]);
    let first = sweep.pending(None, 1).await?;
    let [OutboxRecord { id, owner: None, entries }] = first.as_slice() else { panic!("{first:?}") };
    assert_eq!(entries, &[Err(Unreadable { place: place.clone(), why: why.clone() })]);
    let second = sweep.pending(Some(id), 1).await?;
    assert_eq!(second.iter().map(|pending| pending.owner).collect::<Vec<_>>(), [Some(good)]);
    sweep.resolve_unreadable(place, &UnreadableAction::Delete).await?;
    let left = sweep.pending(None, 10).await?;
    assert_eq!(left.iter().map(|pending| pending.owner).collect::<Vec<_>>(), [Some(good)]);
    scratch.end().await
}
