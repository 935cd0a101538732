//! The shape of the `--json` output, which scripts read.

use std::sync::Arc;

use backend::{Config, SystemHost};
use serde_json::{Map, Value, json};
use servers::TestResult;
use testing::fixtures::Release;

use crate::outbox::with_entries;
use crate::program::{Program, bundled};

/// Replaces values that differ between runs by the names of their types.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            object.iter().map(|(name, value)| (name.clone(), shape(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(values) => {
            let mut shapes: Vec<Value> = values.iter().map(shape).collect();
            shapes.sort_by_key(ToString::to_string);
            shapes.dedup();
            shapes.into()
        }
        Value::String(_) => "string".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "truth".into(),
        Value::Null => Value::Null,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_output_keeps_its_recorded_shape() -> TestResult {
    let program = Program::new();
    let again = b"TY  - JOUR\nTI  - Warm-water immersion in labour: a registry study\nDO  - 10.5555/MI.2018.020\nER  - \n";
    let again = program.file("again.ris", again);
    let (report, _) = program.import(&[bundled("broken.ris"), again], &[]);
    let search = report["search_id"].as_str().unwrap();
    let config = Config { data_dir: program.folder().join("data"), ..Config::default() };
    let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let (_, [entry, ..]) = with_entries(&backend).await?;
    drop(backend);
    let mut show = program.run(&["show", search, "--json"]).json();
    // A field that was added after the recording, and that only some decisions have. Decisions with and without this
    // field have two different shapes.
    for decision in show["decisions"].as_array_mut().unwrap() {
        decision.as_object_mut().unwrap().remove("state");
    }
    let printed = json!({
        "import": report,
        "show": show,
        "studies": program.run(&["studies", search, "--json"]).lines(),
        "outbox list": program.run(&["outbox", "list", "--json"]).lines(),
        "outbox show": program.run(&["outbox", "show", &entry, "--json"]).json(),
    });
    Release::latest().check("cli.json", &shape(&printed));
    Ok(())
}
