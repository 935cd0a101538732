//! How a data directory is, beside a server that works in it, and without one.

use servers::Tested;
use servers::mongo::eventually;

use crate::program::Program;
use crate::serve::{PATIENCE, Server, json_of};

#[tokio::test(flavor = "multi_thread")]
async fn health_is_the_same_from_the_server_and_beside_it() -> Tested {
    let program = Program::new();
    let (server, said) = Server::start_with(&program, &["--listen", "127.0.0.1:0"]);
    let place = format!("health at {0}/health, metrics at {0}/metrics", server.url);
    assert!(said.iter().any(|line| line.contains(&place)), "{said:?}");
    eventually("a sweep has ended", PATIENCE, async || {
        let report = json_of(server.get("/admin/health").await?).await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(report["last_sweep"].is_string())
    })
    .await?;
    let asked = server.get("/health").await?;
    assert_eq!(asked.status(), 200);
    let reach = json_of(asked).await?;
    let beside = program.run(&["health", "--json"]);
    assert_eq!(beside.code, Some(0), "{}", beside.stderr);
    let report = beside.json();
    assert_eq!((&report["parts"], &report["concerns"]), (&reach["parts"], &serde_json::json!([])));
    assert!(report["last_sweep"].is_string(), "{report}");
    let metrics = server.get("/metrics").await?.text().await?;
    assert!(metrics.contains("\nsearch_import_up{part=\"database\"} 1\n"), "{metrics}");
    assert!(metrics.contains("\nsearch_import_last_sweep_timestamp_seconds "), "{metrics}");
    let shown = program.run(&["health"]);
    assert!(shown.stdout.ends_with("all is well\n"), "{}", shown.stdout);
    assert!(
        shown.stdout.lines().any(|line| line.starts_with("queue saga") && line.ends_with("ok")),
        "{}",
        shown.stdout
    );
    assert_eq!(server.stop(), Some(0));
    Ok(())
}

#[test]
fn a_directory_that_is_not_there_is_not_well() {
    let run = Program::new().run(&["health"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("there is no data directory"), "{}", run.stderr);
}
