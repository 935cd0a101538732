//! Query costs in a filled store: proportional to the result, not to the stored data.

use backend::SystemHost;
use contracts::{outboxes, sample};
use futures::TryStreamExt;
use imports::{
    CompareStudies, Duplicate, FileFence, Mark, ParseAttempts, ProjectId, ReadStudies, Reason, Selection,
    Study, StudyRef, Tier, WriteStudies,
};
use jiff::Timestamp;
use messages::{Host, PartitionKey};
use mongo::collections;
use mongodb::bson::{DateTime, Document, doc};
use outbox::{AgeFilter, Owner, ReadViews, SweepOutbox, View, ViewPosition, WriteViews};
use references::Reference;
use saga::{Persist, WriteDocuments};
use uuid::Uuid;

use super::{Scratch, TestResult};

const HOST: &SystemHost = &SystemHost;

/// Returns the execution plan of the only query on a collection since profiling started.
async fn executed(scratch: &Scratch, collection: &str, op: &str) -> Result<Document, mongodb::error::Error> {
    scratch.database.run_command(doc! { "profile": 0 }).await?;
    let filter = doc! { "ns": format!("{}.{collection}", scratch.settings.database), "op": op, "appName": &scratch.app_name };
    let profile = scratch.collection("system.profile");
    let mut found: Vec<Document> = profile.find(filter).await?.try_collect().await?;
    profile.drop().await?;
    assert_eq!(found.len(), 1, "one query is one operation");
    Ok(found.remove(0))
}

/// Returns the execution plans of the queries on a collection since profiling started.
async fn queries(scratch: &Scratch, collection: &str) -> Result<Vec<Document>, mongodb::error::Error> {
    scratch.database.run_command(doc! { "profile": 0 }).await?;
    let filter = doc! { "ns": format!("{}.{collection}", scratch.settings.database), "op": "query", "appName": &scratch.app_name };
    let profile = scratch.collection("system.profile");
    let found: Vec<Document> = profile.find(filter).await?.try_collect().await?;
    profile.drop().await?;
    Ok(found)
}

fn int(operation: &Document, name: &str) -> i64 {
    operation.get_i32(name).map(i64::from).or_else(|_| operation.get_i64(name)).unwrap()
}

/// Stores documents of partitions that have ended without remaining work.
async fn finished(scratch: &Scratch, count: usize) -> TestResult {
    let partition = sample::partition(HOST);
    scratch
        .mongo
        .persist(&[sample::persist(partition, None, sample::ended(HOST, Timestamp::now()))], Timestamp::now())
        .await?;
    let documents = scratch.collection(collections::SAGA);
    let template = documents.find_one(doc! { "CompletedAt": { "$exists": true } }).await?.unwrap();
    let copies = (0..count).map(|n| {
        let mut copy = template.clone();
        copy.insert("_id", format!("finished {n} of {partition}"));
        copy.insert("CompletedAt", DateTime::now());
        copy
    });
    documents.insert_many(copies).await?;
    Ok(())
}

#[tokio::test]
async fn sweep_reads_only_keys_of_due_entries() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let with_entry = |due_at| -> Result<Persist, outbox::StageError> {
        let partition = sample::partition(HOST);
        let write = sample::persist(partition, None, sample::content(HOST, "waits"));
        Ok(Persist { add: vec![sample::entry(HOST, partition, due_at)?], ..write })
    };
    let due = (0..5).map(|_| with_entry(now)).collect::<Result<Vec<_>, _>>()?;
    let waiting = (0..500).map(|_| with_entry(sample::later(now, 3_600))).collect::<Result<Vec<_>, _>>()?;
    scratch.mongo.persist(&due, now).await?;
    scratch.mongo.persist(&waiting, now).await?;
    let mut costs = Vec::new();
    for more in [100, 10_000] {
        finished(&scratch, more).await?;
        scratch.profile().await?;
        assert_eq!(scratch.mongo.saga_outbox().due(now, 100).await?.len(), 5);
        let operation = executed(&scratch, collections::SAGA, "query").await?;
        assert_eq!(operation.get_str("planSummary")?, "IXSCAN { ReadyAt: 1, _id: 1 }");
        costs.push((int(&operation, "keysExamined"), int(&operation, "docsExamined")));
    }
    println!("keys and documents that a sweep reads for 5 due records: {costs:?}");
    assert_eq!(costs, [(5, 0), (5, 0)]);

    scratch.profile().await?;
    let owner = Owner::Saga(due[0].partition);
    outboxes::claim(&scratch.mongo.saga_outbox(), owner, now, sample::later(now, 60)).await?;
    let operation = executed(&scratch, collections::SAGA, "update").await?;
    assert_eq!(int(&operation, "docsExamined"), 1, "{operation}");
    scratch.end().await
}

/// Checks the plan that the planner chooses.
#[tokio::test]
async fn planner_uses_index_of_waiting_searches() -> TestResult {
    let scratch = Scratch::new().await?;
    finished(&scratch, 3_000).await?;
    for collection in [collections::SAGA, collections::SESSION] {
        let find = doc! {
            "find": collection,
            "filter": { "ReadyAt": { "$lte": 1_i64 } },
            "projection": { "_id": 1 },
            "sort": { "ReadyAt": 1, "_id": 1 },
            "limit": 100,
        };
        let explained =
            scratch.database.run_command(doc! { "explain": find, "verbosity": "executionStats" }).await?;
        let plan = explained.get_document("queryPlanner")?.get_document("winningPlan")?.to_string();
        assert!(
            plan.contains("IXSCAN") && plan.contains("outbox_ready") && plan.contains("PROJECTION_COVERED"),
            "{plan}"
        );
        assert!(!plan.contains("COLLSCAN") && !plan.contains("\"SORT\""), "{plan}");
        let stats = explained.get_document("executionStats")?;
        assert_eq!((int(stats, "totalDocsExamined"), int(stats, "nReturned")), (0, 0), "{stats}");
        assert!(int(stats, "totalKeysExamined") <= 1, "{stats}");
    }
    scratch.end().await
}

#[tokio::test]
async fn listing_marked_studies_reads_no_others() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search_id, file_id) = (sample::partition(HOST), testing::search::file(HOST));
    let fence = scratch.mongo.start(search_id, file_id, 1).await?.fence;
    let studies: Vec<_> =
        (1..=2_000).map(|record| testing::search::study(search_id, file_id, record)).collect();
    scratch.mongo.store(&FileFence { search_id, file_id, fence }, studies, vec![]).await?;
    let (tier, reason) = (Tier::Certain, Reason::TitleYearAuthor);
    let duplicate = Some(Duplicate { search_id, file_id, position: 0, record: 1, tier, reason });
    let at = |record| StudyRef { search_id, file_id, record };
    scratch.mongo.mark(1, &[500, 1_000, 1_900].map(|record| Mark { at: at(record), duplicate })).await?;
    scratch.profile().await?;
    let selection = Selection { marked: Some(Tier::Likely), after: 500, limit: 100, bytes: usize::MAX };
    assert_eq!(scratch.mongo.select(search_id, file_id, selection).await?.len(), 2);
    let operation = executed(&scratch, collections::STUDY, "query").await?;
    assert_eq!((int(&operation, "keysExamined"), int(&operation, "docsExamined")), (2, 2));
    assert!(!operation.contains_key("hasSortStage"), "the index has the order: {operation}");
    scratch.end().await
}

#[tokio::test]
async fn lookup_of_studies_by_key_reads_no_others() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search_id, file_id) = (sample::partition(HOST), testing::search::file(HOST));
    let fence = scratch.mongo.start(search_id, file_id, 1).await?.fence;
    let project_id = ProjectId::from_uuid(HOST.fresh_id());
    let study = |record| {
        let study = testing::search::study(search_id, file_id, record);
        let title = ["cold", "children", "zinc", "school"].map(|word| format!("{word}{record:08}")).join(" ");
        Study { project_id, reference: Reference { title, ..study.reference }, ..study }
    };
    let studies: Vec<_> = (1..=2_000).map(study).collect();
    scratch.mongo.store(&FileFence { search_id, file_id, fence }, studies, vec![]).await?;
    let fields = &scratch.mongo.identities_of(search_id, file_id, &[700]).await?[0].fields;
    scratch.profile().await?;
    let found = scratch.mongo.sharing(project_id, &fields.keys(), 5).await?;
    assert!(found.iter().any(|found| found.at.record == 700), "{found:?}");
    let operation = executed(&scratch, collections::STUDY, "query").await?;
    assert!(int(&operation, "docsExamined") <= found.len() as i64, "{operation}");
    assert!(operation.get_str("planSummary").is_ok_and(|plan| plan.contains("Keys")), "{operation}");
    scratch.end().await
}

/// Every upgrade repeats the migration. It reads no study if none lacks its keys.
#[tokio::test]
async fn repeated_migration_of_keys_reads_no_study() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search_id, file_id) = (sample::partition(HOST), testing::search::file(HOST));
    let fence = scratch.mongo.start(search_id, file_id, 1).await?.fence;
    let study = |record| {
        let study = testing::search::study(search_id, file_id, record);
        Study { reference: Reference { doi: Some(format!("10.5555/{record}")), ..study.reference }, ..study }
    };
    let studies = (1..=500).map(study).collect();
    scratch.mongo.store(&FileFence { search_id, file_id, fence }, studies, vec![]).await?;
    scratch.profile().await?;
    assert_eq!(scratch.mongo.make_missing_keys().await?, 0);
    let operation = executed(&scratch, collections::STUDY, "query").await?;
    assert_eq!(int(&operation, "docsExamined"), 0, "{operation}");
    assert!(int(&operation, "keysExamined") < 10, "{operation}");
    scratch.end().await
}

/// The server returns 101 documents first, unless the query states another number.
#[tokio::test]
async fn page_of_studies_is_one_request() -> TestResult {
    let scratch = Scratch::new().await?;
    let (search_id, file_id) = (sample::partition(HOST), testing::search::file(HOST));
    let fence = scratch.mongo.start(search_id, file_id, 1).await?.fence;
    let studies = (1..=500).map(|record| testing::search::study(search_id, file_id, record)).collect();
    scratch.mongo.store(&FileFence { search_id, file_id, fence }, studies, vec![]).await?;
    let records: Vec<u64> = (1..=500).collect();
    scratch.profile().await?;
    assert_eq!(scratch.mongo.keyed(search_id, file_id, 0, 400).await?.len(), 400);
    assert_eq!(scratch.mongo.identities_of(search_id, file_id, &records).await?.len(), 500);
    scratch.database.run_command(doc! { "profile": 0 }).await?;
    let more = scratch.collection("system.profile").count_documents(doc! { "op": "getmore" }).await?;
    assert_eq!(more, 0);
    scratch.end().await
}

#[tokio::test]
async fn listing_unfinished_views_reads_no_finished_ones() -> TestResult {
    let scratch = Scratch::new().await?;
    let views = |count, ended| -> Vec<_> {
        (0..count).map(|_| sample::view(HOST, sample::partition(HOST), 1, ended)).collect()
    };
    scratch.mongo.write(&views(2_000, true)).await?;
    scratch.mongo.write(&views(7, false)).await?;
    scratch.profile().await?;
    assert_eq!(scratch.mongo.unfinished().await?.len(), 7);
    let operation = executed(&scratch, collections::VIEW, "query").await?;
    assert_eq!((int(&operation, "keysExamined"), int(&operation, "docsExamined")), (7, 7));
    assert!(!operation.contains_key("hasSortStage"), "the index has the order: {operation}");
    scratch.end().await
}

#[tokio::test]
async fn views_by_age_read_no_others() -> TestResult {
    let scratch = Scratch::new().await?;
    let list = HOST.fresh_id();
    let views = |count, ended, list, also_in: &[Uuid]| -> Vec<_> {
        let view = |_| {
            let view = sample::view(HOST, sample::partition(HOST), 1, ended);
            View { list, also_in: also_in.iter().copied().collect(), ..view }
        };
        (0..count).map(view).collect()
    };
    // Items of one list are separated by many of others.
    for _ in 0..7 {
        for ended in [false, true] {
            let (other, further) = (HOST.fresh_id(), HOST.fresh_id());
            let (ours, others) = (views(1, ended, list, &[]), views(50, ended, other, &[further]));
            scratch.mongo.write(&[ours, others, views(1, ended, other, &[list, further])].concat()).await?;
        }
    }
    let further = "IXSCAN { AlsoIn: 1, CreatedAt: -1, _id: -1 }";
    for (ended, of, index) in [
        (false, None, "IXSCAN { CreatedAt: 1, _id: 1 }"),
        (true, None, "IXSCAN { CreatedAt: -1, _id: -1 }"),
        (false, Some(list), "IXSCAN { ProjectId: 1, CreatedAt: 1, _id: 1 }"),
        (true, Some(list), "IXSCAN { ProjectId: 1, CreatedAt: -1, _id: -1 }"),
    ] {
        let aged = AgeFilter { list: of, ended, before: Timestamp::MAX };
        let first = scratch.mongo.by_age(&aged, None, 2).await?;
        scratch.profile().await?;
        assert_eq!(scratch.mongo.by_age(&aged, first.next, 2).await?.items.len(), 2);
        let operations = queries(&scratch, collections::VIEW).await?;
        let mut plans: Vec<&str> =
            operations.iter().map(|operation| operation.get_str("planSummary")).collect::<Result<_, _>>()?;
        plans.sort_unstable();
        let wanted = if of.is_some() { vec![further, index] } else { vec![index] };
        assert_eq!(plans, wanted, "{aged:?}");
        for operation in operations {
            assert!(!operation.contains_key("hasSortStage"), "the index has the order: {operation}");
            // These indexes contain both the ended and the unfinished views.
            let both = operation.get_str("planSummary")? == further || (ended && of.is_some());
            let others = if both { 7 } else { 0 };
            assert!(int(&operation, "docsExamined") <= 5 + others, "{aged:?}: {operation}");
        }
    }
    scratch.end().await
}

#[tokio::test]
async fn changes_are_found_without_reading_unchanged() -> TestResult {
    let scratch = Scratch::new().await?;
    let list = HOST.fresh_id();
    let views = |count, ended| -> Vec<_> {
        let view = |_| View { list, ..sample::view(HOST, sample::partition(HOST), 1, ended) };
        (0..count).map(view).collect()
    };
    scratch.mongo.write(&views(2_000, true)).await?;
    scratch.mongo.write(&views(7, false)).await?;
    scratch.profile().await?;
    let since = scratch.mongo.last_written(list).await?;
    let operation = executed(&scratch, collections::VIEW, "query").await?;
    assert_eq!(int(&operation, "keysExamined"), 1, "{operation}");
    scratch.mongo.write(&views(3, true)).await?;
    for after in [None, Some(ViewPosition { at: since, partition: PartitionKey::from_uuid(Uuid::nil()) })] {
        scratch.profile().await?;
        assert!(scratch.mongo.changed(list, since, after, 100).await?.len() >= 3);
        let found = queries(&scratch, collections::VIEW).await?;
        assert_eq!(found.len(), 2, "one for those that have not ended, and one for the others");
        for operation in found {
            assert!(
                int(&operation, "docsExamined") <= 10 && int(&operation, "keysExamined") <= 12,
                "{operation}"
            );
            assert!(!operation.contains_key("hasSortStage"), "the index has the order: {operation}");
        }
    }
    scratch.end().await
}
