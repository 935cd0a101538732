//! Saga documents beyond the contract suite: batches, races, expiry, and what others have stored.

use contracts::{Host, JobState};
use futures::future::join;
use imports::{ReadJobs, ReadStudies, WriteJobs};
use jiff::{SignedDuration, Timestamp};
use mongo::collections;
use mongodb::bson::{Binary, Bson, doc, spec::BinarySubtype};
use outbox::{Entry, Owner, SettleSessions, Settlement, SweepOutbox};
use testing::sample;
use worker::SystemHost;
use worker::document::{Persist, Persisted, ReadSaga, WriteSaga};

use super::{Scratch, Setup, Tested};

const HOST: &SystemHost = &SystemHost;

fn create(name: &str) -> Persist {
    sample::persist(sample::search(HOST), None, sample::uploading(HOST, name))
}

fn next(write: &Persist, loaded: u64) -> Persist {
    sample::persist(write.search_id, Some(loaded), sample::uploading(HOST, "next"))
}

fn uuid(id: uuid::Uuid) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

#[tokio::test]
async fn a_batch_of_ten_is_loaded_stored_and_settled_with_one_command_each() -> Tested {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let mut writes: Vec<Persist> = (0..10).map(|n| create(&format!("search {n}"))).collect();
    for write in &mut writes {
        write.add = vec![sample::entry(HOST, write.search_id, now)?];
    }
    let searches: Vec<_> = writes.iter().map(|write| write.search_id).collect();
    scratch.commands();
    assert_eq!(scratch.mongo.persist(&writes, now).await?, [Persisted::Stored; 10]);
    assert_eq!(scratch.commands(), ["update"]);
    let stored: Vec<_> = scratch.mongo.load(&searches, now).await?.into_iter().flatten().collect();
    assert_eq!((stored.len(), scratch.commands()), (10, vec!["find".to_owned()]));
    let settlements: Vec<_> = writes
        .iter()
        .map(|write| {
            let done = |entry: &Entry| Settlement { id: entry.id, claim: None, keep: None };
            (write.search_id, write.add.iter().map(done).collect::<Vec<_>>())
        })
        .collect();
    scratch.mongo.settle(&settlements).await?;
    assert_eq!(scratch.commands(), ["update"]);
    let updates: Vec<_> = writes.iter().map(|write| next(write, 1)).collect();
    assert_eq!(scratch.mongo.persist(&updates, now).await?, [Persisted::Stored; 10]);
    assert_eq!(scratch.commands(), ["update"]);
    scratch.end().await
}

/// The server gives only a total for them, so the documents are read once more, and only then.
#[tokio::test]
async fn of_several_updates_the_answer_says_which_met_a_conflict() -> Tested {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let (one, two, three, new) = (create("one"), create("two"), create("three"), create("new"));
    scratch.mongo.persist(&[one.clone(), two.clone(), three.clone()], now).await?;
    let orphan = next(&create("never stored"), 1);
    scratch.commands();
    let writes = [next(&one, 1), next(&two, 7), new.clone(), orphan.clone(), next(&three, 1), one.clone()];
    let answers = scratch.mongo.persist(&writes, now).await?;
    use Persisted::{Conflict, Stored};
    assert_eq!(answers, [Stored, Conflict, Stored, Conflict, Stored, Conflict]);
    assert_eq!(scratch.commands(), ["update", "find"]);
    let ids = [one.search_id, two.search_id, new.search_id, orphan.search_id];
    let found = scratch.mongo.load(&ids, now).await?;
    let versions: Vec<_> = found.iter().map(|document| document.as_ref().map(|it| it.version)).collect();
    assert_eq!(versions, [Some(2), Some(1), Some(1), None]);
    scratch.end().await
}

#[tokio::test]
async fn of_two_that_create_a_search_at_once_one_stores_and_the_other_meets_a_taken_key() -> Tested {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    for _ in 0..50 {
        let first = create("first");
        let second = Persist { content: sample::uploading(HOST, "second"), ..first.clone() };
        scratch.commands();
        let both = join(
            scratch.mongo.persist(std::slice::from_ref(&first), now),
            scratch.mongo.persist(std::slice::from_ref(&second), now),
        );
        let (one, two) = both.await;
        let (one, two) = (one?, two?);
        assert_eq!(scratch.commands(), ["update", "update"], "the answer of the write itself tells");
        let winner = match (one.as_slice(), two.as_slice()) {
            ([Persisted::Stored], [Persisted::Conflict]) => first,
            ([Persisted::Conflict], [Persisted::Stored]) => second,
            answers => panic!("{answers:?}"),
        };
        let stored = scratch.mongo.load(&[winner.search_id], now).await?.remove(0).unwrap();
        assert_eq!((stored.version, stored.content), (1, winner.content));
    }
    scratch.end().await
}

/// A revision that loses the race to insert is compared with the winner, not dropped.
#[tokio::test]
async fn of_two_first_writes_of_a_job_at_once_the_later_revision_stays() -> Tested {
    let scratch = Scratch::new().await?;
    for _ in 0..50 {
        let search = sample::search(HOST);
        let job = |revision| vec![sample::job(HOST, search, revision, JobState::Parsing)];
        let (early, late) = (job(1), job(2));
        let (one, two) = join(scratch.mongo.write(&early), scratch.mongo.write(&late)).await;
        one.and(two)?;
        assert_eq!(scratch.mongo.job(search).await?.map(|job| job.revision), Some(2));
    }
    scratch.end().await
}

#[tokio::test]
async fn text_that_looks_like_an_expression_is_stored_as_it_is() -> Tested {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    for text in ["$$ROOT", "$Outbox", "{\"$literal\": 1}", "a.b$c\u{0}d"] {
        let mut write = create(text);
        let entry = Entry { payload: text.to_owned(), ..sample::entry(HOST, write.search_id, now)? };
        write.add = vec![entry.clone()];
        scratch.mongo.persist(std::slice::from_ref(&write), now).await?;
        let failed = Entry { error: Some(text.to_owned()), attempts: 1, ..entry.clone() };
        let settlement = Settlement { id: entry.id, claim: None, keep: Some(failed.clone()) };
        scratch.mongo.settle(&[(write.search_id, vec![settlement])]).await?;
        let stored = scratch.mongo.load(&[write.search_id], now).await?.remove(0).unwrap();
        assert_eq!((stored.content, stored.outbox), (write.content, vec![failed]));
        // Of a search of its own: a running one is read from its saga.
        let mut job = sample::job(HOST, create(text).search_id, 1, JobState::Parsing);
        job.name = Some(text.to_owned());
        scratch.mongo.write(std::slice::from_ref(&job)).await?;
        assert_eq!(scratch.mongo.job(job.search_id).await?, Some(job));
    }
    scratch.end().await
}

/// A claim is recognised by its exact end, and MongoDB's dates would cut it off.
#[tokio::test]
async fn a_claim_is_recognised_to_the_nanosecond() -> Tested {
    let scratch = Scratch::new().await?;
    let now = Timestamp::from_nanosecond(1_767_225_600_123_456_789)?;
    let mut write = create("nanoseconds");
    write.add = vec![sample::entry(HOST, write.search_id, now)?];
    scratch.mongo.persist(std::slice::from_ref(&write), now).await?;
    let (sweep, owner) = (scratch.mongo.saga_outbox(), Owner::Saga(write.search_id));
    let just = |nanos| now.checked_add(SignedDuration::from_nanos(nanos)).unwrap();
    assert_eq!(sweep.claim_due(owner, just(-1), just(300)).await?, [], "a nanosecond early");
    let claimed = sweep.claim_due(owner, now, just(300)).await?;
    let settle = |claim| Settlement { id: claimed[0].id, claim: Some(claim), keep: None };
    let outbox = async || -> Result<Vec<Entry>, contracts::StoreError> {
        Ok(scratch.mongo.load(&[write.search_id], now).await?.remove(0).unwrap().outbox)
    };
    assert_eq!(outbox().await?, claimed, "the claim is loaded as it was given");
    for wrong in [just(299), just(301)] {
        sweep.settle(owner, &[settle(wrong)]).await?;
        assert_eq!(outbox().await?.len(), 1);
    }
    sweep.settle(owner, &[settle(just(300))]).await?;
    assert_eq!(outbox().await?, []);
    scratch.end().await
}

/// It counts as absent, so it must not stand in the way; but what it still had to do is not forgotten.
#[tokio::test]
async fn a_creating_write_takes_the_place_of_an_expired_document_and_keeps_its_outbox() -> Tested {
    // Without the index, so that nothing is deleted meanwhile.
    let setup = Setup { indexed: false, ..Setup::default() };
    let scratch = Scratch::with(&servers::mongo::uri(), setup).await?;
    let ended = Timestamp::from_nanosecond(1_767_225_600_000_000_001)?;
    let mut write = create("first life");
    write.content = sample::ended(HOST, ended);
    write.add = vec![Entry { poisoned: true, ..sample::entry(HOST, write.search_id, ended)? }];
    scratch.mongo.persist(std::slice::from_ref(&write), ended).await?;
    let again = Persist {
        content: sample::uploading(HOST, "second life"),
        add: vec![sample::entry(HOST, write.search_id, ended)?],
        ..write.clone()
    };
    let expiry = ended.checked_add(scratch.settings.saga_retention)?;
    let early = scratch.mongo.persist(std::slice::from_ref(&again), expiry).await?;
    assert_eq!(early, [Persisted::Conflict], "less than a millisecond early by the stored date");
    assert!(
        scratch.mongo.load(&[write.search_id], expiry).await?.remove(0).is_some(),
        "so it is still there"
    );
    let later = expiry.checked_add(SignedDuration::from_millis(1))?;
    assert_eq!(scratch.mongo.load(&[write.search_id], later).await?, [None]);
    assert_eq!(scratch.mongo.persist(std::slice::from_ref(&again), later).await?, [Persisted::Stored]);
    let stored = scratch.mongo.load(&[write.search_id], later).await?.remove(0).unwrap();
    assert_eq!((stored.version, &stored.content), (1, &again.content));
    assert_eq!(stored.outbox, [write.add, again.add].concat());
    let raw = scratch.collection(collections::SAGA).find_one(doc! {}).await?.unwrap();
    assert!(!raw.contains_key("CompletedAt"), "it has not ended again: {raw}");
    scratch.end().await
}

#[tokio::test]
async fn what_others_have_stored_is_unusable_and_is_named() -> Tested {
    let scratch = Scratch::new().await?;
    let id = HOST.fresh_id();
    for name in collections::ALL {
        let foreign = doc! { "_id": uuid(id), "ReadyAt": 1_i64, "Outbox": [{ "type": "Kafka" }], "Ended": false, "CreatedAt": 1_i64 };
        let mut foreign = foreign;
        foreign
            .extend(doc! { "SearchId": uuid(id), "FileId": uuid(id), "Record": 1_i64, "Files": { "a": 1 } });
        scratch.collection(name).insert_one(foreign).await?;
    }
    let (search, session) = (contracts::SearchId::from_uuid(id), contracts::SessionId::from_uuid(id));
    let (now, file) = (HOST.now(), contracts::FileId::from_uuid(id));
    let sweep = scratch.mongo.saga_outbox();
    let errors = [
        (collections::SAGA, scratch.mongo.load(&[search], now).await.err()),
        (collections::SAGA, sweep.claim_due(Owner::Saga(search), now, now).await.err()),
        (collections::JOB, scratch.mongo.job(search).await.err()),
        (collections::JOB, scratch.mongo.unfinished().await.err()),
        (collections::PROGRESS, scratch.mongo.progress(search).await.err()),
        (collections::STUDY, scratch.mongo.studies(search, file, 0, 10).await.err()),
        (collections::QUARANTINE, scratch.mongo.quarantined(search, file, 0, 10).await.err()),
        (collections::FILE, scratch.mongo.parsed(search).await.err()),
        (collections::SESSION, scratch.mongo.find(session).await.err()),
        (collections::SESSION, scratch.mongo.bury(session, now).await.err()),
    ];
    for (name, error) in errors {
        let error = error.unwrap_or_else(|| panic!("{name} was understood"));
        let text = error.chain();
        assert!(!error.is_retryable(), "{text}");
        assert!(text.contains(name) && text.contains(&id.to_string()), "{text}");
    }
    let odd = doc! { "_id": "not ours", "ReadyAt": 1_i64 };
    scratch.collection(collections::SAGA).insert_one(odd).await?;
    let text = sweep.due(now, 10).await.unwrap_err().chain();
    assert!(text.contains("pmSearchImportJobState") && text.contains("not ours"), "{text}");
    scratch.end().await
}
