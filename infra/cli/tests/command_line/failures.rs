//! Operator commands for failures, and the deletion of searches.

use std::sync::Arc;
use std::time::Duration;

use backend::SystemHost;
use embedded::{Settings, Store};
use imports::queues::{QUEUES, SAGA};
use messages::{Disposition, MessageId, Outgoing, PartitionKey, ReceiveMessages, SendMessages};
use servers::TestResult;

use crate::program::{Program, bundled};

/// Dead-letters messages of the saga's queue for these reasons.
pub(crate) async fn dead_letter(program: &Program, reasons: &[&str]) -> TestResult {
    let store = Store::open(&program.data(), Arc::new(SystemHost), Settings::new(&QUEUES))?;
    for (number, reason) in (1_u128..).zip(reasons) {
        let id = uuid::Uuid::from_u128(number);
        let outgoing = Outgoing {
            id: MessageId::from_uuid(id),
            partition: PartitionKey::from_uuid(id),
            queue: SAGA,
            body: format!("junk {number}"),
            delay: Duration::ZERO,
        };
        store.send(&[outgoing]).await.into_iter().collect::<Result<(), _>>()?;
        let received = store.receive(&SAGA, 1, Duration::from_secs(60)).await?.remove(0);
        let reason = (*reason).to_owned();
        store.answer(&SAGA, &received.receipt, &Disposition::DeadLetter { reason }).await?;
    }
    Ok(())
}

#[tokio::test]
async fn failures_are_grouped_retried_and_archived() -> TestResult {
    let program = Program::new();
    program.import(&[bundled("psycinfo.ris")], &[]);
    dead_letter(&program, &["partition 1 cannot be read", "partition 2 cannot be read", "the disk is full"])
        .await?;
    let dry = program.run(&["failures", "retry", "--all", "--dry-run"]);
    assert!(dry.stdout.contains("3 failures of 2 causes"), "{}", dry.stdout);
    assert!(dry.stdout.lines().all(|line| line.chars().count() <= 80), "{}", dry.stdout);
    let groups = program.run(&["failures", "groups", "--json"]).lines();
    assert_eq!((&groups[0]["count"], &groups[1]["count"]), (&2.into(), &1.into()));
    let cause = groups[0]["fingerprint"].as_str().unwrap();
    let listed = program.run(&["failures", "list", "--cause", cause, "--json"]).lines();
    assert_eq!(listed.len(), 2);
    let id = listed[0]["id"].as_str().unwrap();
    let shown = program.run(&["failures", "show", &id[..8], "--json"]).json();
    assert!(shown["body"].as_str().unwrap().starts_with("junk "), "{shown}");

    let archived = program.run(&["failures", "archive", &id[..8], "--reason", "known"]);
    assert_eq!((archived.code, archived.stdout.trim()), (Some(0), "1 failure archived"));
    let again = program.run(&["failures", "retry", id]);
    assert!(again.code == Some(1) && again.stderr.contains("is archived: known"), "{}", again.stderr);
    let retried = program.run(&["failures", "retry", "--all", "--per-second", "100"]);
    assert!(
        retried.code == Some(0) && retried.stdout.contains("is done; 2 of 2 failures"),
        "{}{}",
        retried.stdout,
        retried.stderr
    );
    assert_eq!(program.run(&["failures", "list", "--json"]).lines(), [] as [serde_json::Value; 0]);
    let nothing = program.run(&["failures", "retry", "--all"]);
    assert!(
        nothing.code == Some(1) && nothing.stderr.contains("none of these failures"),
        "{}",
        nothing.stderr
    );
    let entries = program.run(&["failures", "audit", "--json"]).lines();
    let did: Vec<&str> = entries.iter().map(|entry| entry["did"].as_str().unwrap()).collect();
    assert_eq!(did, ["began a retry", "archived"]);
    let operations = program.run(&["failures", "operations"]);
    assert!(
        operations.stdout.contains("done") && operations.stdout.contains("1 retry"),
        "{}",
        operations.stdout
    );
    Ok(())
}

#[test]
fn deletion_by_name_removes_all_data() {
    let program = Program::new();
    let (report, _) = program.import(&[bundled("psycinfo.ris")], &["--search-name", "to go"]);
    let id = report["search_id"].as_str().unwrap();
    let late = program.run(&["cancel", "to go"]);
    assert!(
        late.code == Some(1) && late.stderr.contains("has already ended as Completed"),
        "{}",
        late.stderr
    );
    let deleted = program.run(&["delete", "to go"]);
    assert_eq!((deleted.code, deleted.stdout.trim()), (Some(0), &*format!("import {id} is deleted")));
    assert_eq!(program.run(&["studies", id]).code, Some(1));
    assert_eq!(program.run(&["searches", "--json"]).lines(), [] as [serde_json::Value; 0]);
    let objects = program.data().join("objects");
    assert_eq!(std::fs::read_dir(objects).unwrap().count(), 0, "the uploaded file is gone");
    let again = program.run(&["delete", id]);
    assert!(again.code == Some(1) && again.stderr.contains("there is no import"), "{}", again.stderr);
}
