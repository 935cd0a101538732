//! With the services, no log or error contains a secret, including credentials in addresses.

use std::sync::Arc;
use std::time::Duration;

use backend::{Config, SystemHost};
use imports::ProjectId;
use messages::Host;
use mongodb::bson::doc;
use servers::amazon::Service;
use servers::mongo::eventually;
use servers::net::{Fate, Unreliable};
use servers::{TestResult, unique};
use service::{NewFile, NewSearch, SearchService};

use super::faults::impatient;
use super::{Environment, upload};
use crate::program::bundled;
use crate::secrets::Secrets;

const TIMEOUT: Duration = Duration::from_secs(90);
const PASSWORD: &str = "x9Pw-never-to-be-told";

/// A whole import that logs at `trace`, with a password in the database's address and an object store that fails at
/// first.
#[tokio::test(flavor = "multi_thread")]
async fn failing_object_store_logs_no_secrets() -> TestResult {
    Environment::with(async |environment| {
        let config = Config::from_pairs(imports::SYSTEM, environment.settings.clone())?;
        let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
        let content = std::fs::read(bundled("psycinfo.ris"))?;
        let file = NewFile { name: "a.ris".into(), size_bytes: content.len() as u64 };
        let request = NewSearch { name: "secret".into(), files: vec![file] };
        let project = ProjectId::from_uuid(SystemHost.fresh_id());
        let announced =
            SearchService::over(&backend.ports, &functions::SYSTEM)?.create(project, &request).await?;
        let form = &announced.files[0].upload;
        upload(&environment, form, &content).await?;
        let secrets = Secrets::of(&[form]).and(PASSWORD);
        let user = unique("user");
        let database = environment.database().await?;
        let admin = database.client().database("admin");
        admin.run_command(doc! { "createUser": &user, "pwd": PASSWORD, "roles": ["root"] }).await?;
        let with_password = format!("mongodb://{user}:{PASSWORD}@");
        let uri = environment.settings["MONGODB_URI"].replacen("mongodb://", &with_password, 1);
        // The first request checks the bucket.
        let fails = |request| if (1..8).contains(&request) { Fate::SLOW_DOWN } else { Fate::Passed };
        let objects = Unreliable::before(&Service::S3.address(), fails).await;
        let program = impatient(&environment)
            .but(Service::S3.variable(), &objects.address)
            .but("MONGODB_URI", &uri)
            .but("RUST_LOG", "trace")
            .program();
        let log = program.folder().join("log");
        let search = announced.search_id.to_string();
        let mut worker = program.start_logging(&["serve"], &log);
        let told = eventually("the search has ended", TIMEOUT, async || {
            secrets.are_not_in(&std::fs::read_to_string(&log)?);
            let shown = program.run(&["show", &search, "--json"]);
            let listed = program.run(&["outbox", "list", "--json"]);
            secrets.are_not_in(&format!("{}\n{}\n{}", shown.stdout, shown.stderr, listed.stderr));
            Ok::<_, std::io::Error>(shown.json()["job"]["state"] == "Completed")
        })
        .await;
        let killed = worker.kill();
        worker.wait()?;
        killed?;
        admin.run_command(doc! { "dropUser": &user }).await?;
        told?;
        assert!(objects.faults().values().sum::<usize>() > 0);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_password_is_never_logged() -> TestResult {
    Environment::with(async |environment| {
        let with_password = format!("mongodb://someone:{PASSWORD}@");
        let uri = environment.settings["MONGODB_URI"].replacen("mongodb://", &with_password, 1);
        let program = environment.but("MONGODB_URI", &uri).but("RUST_LOG", "trace").program();
        for command in [&["migrate"][..], &["outbox", "list"]] {
            let run = program.run(command);
            assert_ne!(run.code, Some(0), "{}", run.stdout);
            assert!(!run.stdout.contains(PASSWORD), "{}", run.stdout);
            assert!(run.stderr.contains("uthenticat") && !run.stderr.contains(PASSWORD), "{}", run.stderr);
        }
        Ok(())
    })
    .await
}
