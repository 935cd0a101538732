//! Listing and changing reviews.

use serde_json::Value;

use crate::program::{Program, bundled};

fn names(program: &Program, more: &[&str]) -> Vec<String> {
    let listed = program.run(&[&["reviews", "list", "--json"], more].concat()).lines();
    listed.iter().map(|review| review["name"].as_str().unwrap().to_owned()).collect()
}

fn changed(program: &Program, args: &[&str]) -> Value {
    let run = program.run(&[&["reviews"], args, &["--json"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.json()
}

#[test]
fn import_finds_review_ignoring_case() {
    let program = Program::new();
    let (first, run) = program.import(&[bundled("psycinfo.ris")], &["--project", "Sleep apnoea"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let (_, run) = program.import(&[bundled("broken.ris")], &["--project", "SLEEP apnoea"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(names(&program, &[]), ["Sleep apnoea"]);
    let listed = program.run(&["searches", "--json", "--project", "sleep apnoea"]).lines();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1]["search_id"], first["search_id"]);
    let table = program.run(&["reviews", "list"]).stdout;
    assert!(table.contains("Sleep apnoea") && table.ends_with("1 review\n"), "{table}");
}

#[test]
fn review_is_created_renamed_archived_and_deleted() {
    let program = Program::new();
    let made = changed(&program, &["create", "Sleep"]);
    let again = program.run(&["reviews", "create", "sleep"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("already a review with the name \"Sleep\""), "{}", again.stderr);
    let (_, run) = program.import(&[bundled("psycinfo.ris")], &["--project", "sleep"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let renamed = changed(&program, &["rename", "sleep", "Sleep apnoea"]);
    assert_eq!((&renamed["name"], &renamed["project_id"]), (&"Sleep apnoea".into(), &made["project_id"]));
    changed(&program, &["archive", "SLEEP APNOEA"]);
    assert_eq!((names(&program, &[]).len(), names(&program, &["--archived"]).len()), (0, 1));
    changed(&program, &["restore", "sleep apnoea"]);
    assert_eq!(names(&program, &[]), ["Sleep apnoea"]);
    assert_eq!(changed(&program, &["delete", "sleep apnoea", "--yes"])["done"], "deleted");
    assert_eq!(names(&program, &["--archived"]), [""; 0]);
    assert_eq!(program.run(&["searches", "--all", "--json"]).lines().len(), 0);
    for action in [&["archive", "slep"][..], &["rename", "slep", "other"], &["delete", "slep", "--yes"]] {
        let run = program.run(&[&["reviews"], action].concat());
        assert_eq!(run.code, Some(1), "{action:?}: {}", run.stdout);
        assert!(run.stderr.contains("there is no review \"slep\""), "{action:?}: {}", run.stderr);
    }
    assert_eq!(names(&program, &["--archived"]), [""; 0]);
}
