//! Invalid settings: one line that names the setting to change, and no partial work.

use mongodb::bson::{Document, doc};
use servers::TestResult;

use super::Environment;
use crate::program::{Program, bundled};

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_fail_before_any_work() -> TestResult {
    Environment::with(async |environment| {
        let uri = &environment.settings["MONGODB_URI"];
        let with_password = uri.replacen("mongodb://", "mongodb://reviewer:hunter2@", 1);
        let saga_queue = format!("{}-gone", environment.settings["SEARCH_IMPORT_SAGA_QUEUE_URL"]);
        let processed = &environment.settings["SEARCH_IMPORT_PROCESSED_TABLE"];
        for (setting, value, says) in [
            ("SEARCH_IMPORT_BACKEND", "azure", "either \"embedded\" or \"aws\""),
            ("MONGODB_URI", "", "is not set"),
            ("MONGODB_URI", "localhost:27017", "cannot be used as an address"),
            ("MONGODB_URI", "mongodb://127.0.0.1:1/", "no MongoDB server answers"),
            ("MONGODB_URI", &with_password, "refuses the user name or the password"),
            ("MONGODB_DATABASE", "a.b", "must be a name"),
            ("SEARCH_IMPORT_LEDGER_TABLE", "", "is not set"),
            ("SEARCH_IMPORT_LEDGER_TABLE", "no-such-table", "there is no table \"no-such-table\""),
            ("SEARCH_IMPORT_LEDGER_TABLE", processed, "has another purpose"),
            ("SEARCH_IMPORT_PROCESSED_TABLE", "no-such-table", "there is no table \"no-such-table\""),
            ("SEARCH_IMPORT_SAGA_QUEUE_URL", &saga_queue, "there is no queue"),
            ("SEARCH_IMPORT_PARSE_QUEUE_URL", "", "is not set"),
            ("SEARCH_IMPORT_UPLOAD_BUCKET", "", "is not set"),
            ("SEARCH_IMPORT_UPLOAD_BUCKET", "no-such-bucket", "there is no bucket \"no-such-bucket\""),
        ] {
            let program = environment.but(setting, value).program();
            let file = bundled("psycinfo.ris");
            let run = program.run(&["import", file.to_str().unwrap(), "--json"]);
            assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{setting}={value}");
            let error = run.stderr.trim_end();
            assert!(error.contains(setting) && error.contains(says), "{setting}={value}: {error}");
            assert_eq!(error.lines().count(), 1, "{setting}={value}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let database = environment.database().await?;
        for name in database.list_collection_names().await? {
            assert_eq!(database.collection::<Document>(&name).count_documents(doc! {}).await?, 0, "{name}");
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_document_is_reported_and_unchanged() -> TestResult {
    Environment::with(async |environment| {
        let (program, foreign) = (environment.program(), uuid::Uuid::now_v7().to_string());
        let jobs = environment.database().await?.collection::<Document>(mongo::collections::VIEW);
        let document = doc! { "_id": &foreign, "Status": "done" };
        jobs.insert_one(document.clone()).await?;
        let shown = program.run(&["show", &foreign]);
        assert_eq!(shown.code, Some(1));
        assert!(shown.stderr.contains(&foreign), "{}", shown.stderr);
        let (report, _) = program.import(&[bundled("psycinfo.ris")], &[]);
        assert_eq!(report["state"], "Completed", "others are not affected");
        assert_eq!(jobs.find_one(doc! { "_id": &foreign }).await?, Some(document));
        Ok(())
    })
    .await
}

#[test]
fn missing_settings_are_listed_in_one_error() {
    let program = ["AWS_REGION", "AWS_DEFAULT_REGION", "MONGODB_URI"];
    let program = program.into_iter().fold(Program::new(), Program::without);
    // Machines outside AWS do not provide a region.
    let program =
        program.setting("AWS_EC2_METADATA_DISABLED", "true").setting("AWS_CONFIG_FILE", "/dev/null");
    let program = program.setting("SEARCH_IMPORT_BACKEND", "aws");
    let file = bundled("psycinfo.ris");
    let run = program.run(&["import", file.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    for setting in [
        "MONGODB_URI",
        "SEARCH_IMPORT_LEDGER_TABLE",
        "SEARCH_IMPORT_PROCESSED_TABLE",
        "SEARCH_IMPORT_UPLOAD_BUCKET",
        "SEARCH_IMPORT_SAGA_QUEUE_URL",
        "SEARCH_IMPORT_EVENTS_QUEUE_URL",
        "AWS_REGION",
    ] {
        assert!(run.stderr.contains(setting), "{setting}: {}", run.stderr);
    }
    let run = program.run(&["searches"]);
    let said = "error: MONGODB_URI is not set; docs/settings.md has all settings\n";
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(1), said),
        "settings that it does not need are not required"
    );
}
