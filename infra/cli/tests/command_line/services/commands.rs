//! The commands that change data, in the order in which users need them.

use std::sync::Arc;

use backend::{Config, SystemHost};
use mongo::collections;
use mongodb::bson::{Document, doc};
use servers::TestResult;

use super::Environment;
use crate::program::bundled;

#[tokio::test(flavor = "multi_thread")]
async fn import_on_services_is_stored_once() -> TestResult {
    Environment::with(async |environment| {
        let program = environment.program();
        let files = ["psycinfo.ris", "pubmed.nbib"].map(bundled);
        let (report, run) = program.import(&files, &["--duplicate", "3", "--shuffle", "1"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!((&report["state"], &report["studies"]), (&"Completed".into(), &6.into()), "{report}");
        assert!(report["messages"]["duplicates_dropped"].as_u64() > Some(0), "{report}");
        let studies = environment.database().await?.collection::<Document>(collections::STUDY);
        assert_eq!(studies.count_documents(doc! {}).await?, 6);
        let search = report["search_id"].as_str().unwrap();
        let listed = program.run(&["studies", search, "--json"]).lines();
        assert_eq!(listed.len(), 6);
        let shown = program.run(&["show", search, "--json"]).json();
        assert_eq!(shown["job"]["state"], "Completed");
        let decisions = shown["decisions"].as_array().unwrap();
        let dropped = decisions.iter().filter(|decision| decision["verdict"] == "duplicate").count();
        assert_eq!(report["messages"]["duplicates_dropped"], dropped, "the report counts all decisions");
        let for_people = program.run(&["show", "psycinfo.ris"]).stdout;
        assert!(for_people.contains("handled: all files are here; parsing 2"), "{for_people}");
        assert_eq!(program.run(&["searches", "--json"]).json()["search_id"], search);
        assert_eq!(program.run(&["outbox", "list"]).stdout, "0 entries\n");
        assert_eq!(program.run(&["resume", "--json"]).code, Some(0), "there is nothing to do");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_history_writes_nothing() -> TestResult {
    Environment::with(async |environment| {
        let program = environment.but("SEARCH_IMPORT_HISTORY_SECONDS", "0").program();
        let (report, run) = program.import(&[bundled("psycinfo.ris")], &[]);
        assert_eq!((run.code, &report["state"]), (Some(0), &"Completed".into()), "{}", run.stderr);
        assert_eq!(report["messages"], serde_json::Value::Null);
        let history = environment.database().await?.collection::<Document>(collections::HISTORY);
        assert_eq!(history.count_documents(doc! {}).await?, 0);
        let shown = program.run(&["show", "psycinfo.ris"]).stdout;
        assert!(shown.contains("no history of messages is kept"), "{shown}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn differing_index_is_rebuilt_on_request() -> TestResult {
    Environment::with(async |environment| {
        let (program, name) = (environment.program(), "ttl_CompletedAt_7d");
        let built = program.run(&["migrate"]);
        assert_eq!(built.code, Some(0), "{}", built.stderr);
        assert!(built.stdout.contains(&format!("{name}: created")), "{}", built.stdout);
        let database = environment.database().await?;
        let change =
            doc! { "collMod": collections::SAGA, "index": { "name": name, "expireAfterSeconds": 60 } };
        database.run_command(change).await?;
        let reported = program.run(&["migrate"]);
        assert_eq!(reported.code, Some(1));
        assert!(reported.stdout.contains(&format!("{name}: differs")), "{}", reported.stdout);
        assert!(reported.stderr.contains("--rebuild"), "{}", reported.stderr);
        // Imports still work.
        let (report, run) = program.import(&[bundled("psycinfo.ris")], &[]);
        assert_eq!(report["state"], "Completed");
        assert!(run.stderr.contains("migrate --rebuild"), "{}", run.stderr);
        let rebuilt = program.run(&["migrate", "--rebuild"]);
        assert_eq!(rebuilt.code, Some(0), "{}", rebuilt.stderr);
        assert!(rebuilt.stdout.contains(&format!("{name}: rebuilt")), "{}", rebuilt.stdout);
        assert_eq!(program.run(&["migrate"]).code, Some(0));
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_entries_are_requeued_or_deleted() -> TestResult {
    Environment::with(async |environment| {
        let config = Config::from_pairs(imports::SYSTEM, environment.settings.clone())?;
        let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
        crate::outbox::operates(&environment.program(), &backend).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn health_reports_missing_services_and_counts() -> TestResult {
    Environment::with(async |environment| {
        let program = environment.program();
        program.import(&[bundled("psycinfo.ris")], &[]);
        let run = program.run(&["health", "--json"]);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        let report = run.json();
        let names: Vec<&str> =
            report["parts"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
        assert!(names.starts_with(&["database", "ledger"]), "{names:?}");
        assert!(names.contains(&"queue saga"), "{names:?}");
        assert_eq!(report["searches"]["Parsing"], 0);
        assert!(report["last_sweep"].is_string(), "the import has swept");

        let setting = backend::queue_setting(&imports::queues::SAGA);
        let gone = format!("{}-gone", environment.settings[&setting]);
        let run = environment.but(&setting, &gone).program().run(&["health", "--json"]);
        assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
        let concerns = run.json()["concerns"].to_string();
        assert!(concerns.contains("queue saga: ") && !concerns.contains("http"), "{concerns}");
        Ok(())
    })
    .await
}
