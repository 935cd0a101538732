//! Listing and finding searches.

use serde_json::{Value, json};

use crate::program::{Program, bundled};

/// Imports a sample as a search with this name. Returns the search's id.
fn import(program: &Program, name: &str, more: &[&str]) -> String {
    let (report, run) = program.import(&[bundled("broken.ris")], &[&["--search-name", name], more].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    report["search_id"].as_str().unwrap().to_owned()
}

fn names(program: &Program, more: &[&str]) -> Vec<String> {
    let listed = program.run(&[&["searches", "--json"], more].concat()).lines();
    listed.iter().map(|search| search["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn searches_are_listed_latest_first_and_filtered() {
    let program = Program::new();
    let first = import(&program, "Gambling harms", &[]);
    import(&program, "Loneliness", &[]);
    import(&program, "More on GAMBLING", &[]);
    assert_eq!(names(&program, &[]), ["More on GAMBLING", "Loneliness", "Gambling harms"]);
    assert_eq!(names(&program, &["--text", "gambling"]), ["More on GAMBLING", "Gambling harms"]);
    assert_eq!(names(&program, &["--text", "gambling", "--limit", "1"]), ["More on GAMBLING"]);
    assert_eq!(names(&program, &["--state", "completed"]).len(), 3);
    assert_eq!(names(&program, &["--state", "error"]), [""; 0]);
    let listed = program.run(&["searches", "--json", "--text", "harms"]).json();
    let told = ["search_id", "state", "files", "studies", "unread"].map(|key| listed[key].clone());
    assert_eq!(told, [json!(first), json!("Completed"), json!(1), json!(2), json!(1)]);
    let table = program.run(&["searches", "--limit", "2"]).stdout;
    assert!(table.contains("Loneliness") && !table.contains("harms"), "{table}");
    assert!(table.ends_with("2 imports; --limit shows more\n"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(program.run(&["searches", "--limit", "0"]).code, Some(2));
}

#[test]
fn short_ids_of_list_identify_searches() {
    let program = Program::new();
    import(&program, "one", &[]);
    import(&program, "two", &[]);
    let table = program.run(&["searches"]).stdout;
    for (line, name) in table.lines().skip(2).zip(["two", "one"]) {
        let id = line.split_whitespace().next().unwrap();
        assert_eq!(program.run(&["show", id, "--json"]).json()["job"]["name"], name, "{table}");
    }
}

#[test]
fn search_is_found_by_id_prefix_or_name() {
    let program = Program::new();
    let id = import(&program, "Gambling harms", &[]);
    let bare = id.replace('-', "").to_uppercase();
    let out = program.folder().join("out.ris");
    for text in [&id, &id[..4], &id[..20], &bare, &bare[..10], "Gambling harms"] {
        assert_eq!(program.run(&["show", text, "--json"]).json()["job"]["search_id"], json!(id), "{text}");
        assert_eq!(program.run(&["studies", text, "--json"]).lines().len(), 2, "{text}");
        let run = program.run(&["quarantine", text, "--out", out.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{text}: {}", run.stderr);
        std::fs::remove_file(&out).unwrap();
    }
    for text in ["Gambling", "gambling harms", &id[..3], "ffff", ""] {
        let run = program.run(&["show", text]);
        assert_eq!(run.code, Some(1));
        let (said, place) = (&run.stderr, program.data().display().to_string());
        assert!(said.contains(&format!("there is no import \"{text}\"")) && said.contains(&place), "{said}");
    }
}

#[test]
fn ambiguous_name_lists_matching_searches() {
    let program = Program::new();
    let ids: Vec<String> = (0..6).map(|_| import(&program, "twice", &[])).collect();
    for text in ["twice", &ids[0][..4]] {
        let run = program.run(&["studies", text]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        let said = run.stderr;
        assert!(said.contains(&format!("\"{text}\" matches 6 imports")), "{said}");
        assert_eq!(ids.iter().filter(|id| said.contains(id.as_str())).count(), 5, "{said}");
        assert!(said.contains("\"twice\" (Completed)"), "{said}");
    }
}

#[test]
fn project_name_always_means_same_project() {
    let program = Program::new();
    let (gambling, other) = (["--project", "gambling"], import(&program, "other", &[]));
    let id = import(&program, "harms", &gambling);
    assert_eq!(names(&program, &gambling), ["harms"]);
    assert_eq!(names(&program, &[]), ["other"]);
    let job = program.run(&["show", "harms", "--json", "--project", "gambling"]).json()["job"].clone();
    let project = job["project_id"].as_str().unwrap();
    assert_eq!(names(&program, &["--project", project]), ["harms"], "its id means it too");
    assert_eq!(program.run(&["show", "harms"]).code, Some(1), "it is in another project");
    assert_eq!(program.run(&["show", &id]).code, Some(0), "a whole id needs no project");
    let elsewhere = program.setting("SEARCH_IMPORT_PROJECT", "gambling");
    assert_eq!(names(&elsewhere, &[]), ["harms"]);
    assert_eq!(elsewhere.run(&["show", &other[..13]]).code, Some(1));
}

#[test]
fn invalid_project_name_is_rejected() {
    let program = Program::new();
    for (name, why) in
        [("", "is empty"), ("a\tb", "control character"), (&"n".repeat(256), "longer than 255")]
    {
        let run = program.run(&["searches", "--project", name]);
        assert_eq!(run.code, Some(2), "{name}");
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }
    let run = program.setting("SEARCH_IMPORT_PROJECT", "a\tb").run(&["searches"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("SEARCH_IMPORT_PROJECT names no project"), "{}", run.stderr);
}

#[test]
fn empty_list_of_searches_is_reported() {
    let program = Program::new();
    import(&program, "one", &[]);
    let run = program.run(&["searches", "--project", "empty"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.starts_with("no matching imports in review \"empty\" of "), "{}", run.stdout);
    let none: Vec<Value> = program.run(&["searches", "--project", "empty", "--json"]).lines();
    assert!(none.is_empty());
}

#[test]
fn changes_are_listed_since_previous_call() {
    let program = Program::new();
    import(&program, "before", &[]);
    let begin = program.run(&["changes", "--json"]).json();
    assert_eq!(begin["items"], json!([]));
    let id = import(&program, "Gambling harms", &[]);
    import(&program, "elsewhere", &["--project", "other"]);
    let since = ["changes", "--since", begin["next"].as_str().unwrap()];
    let told = program.run(&[&since[..], &["--json"]].concat()).json();
    let item = &told["items"][0];
    assert_eq!((&item["search_id"], &item["deleted"]), (&json!(id), &json!(false)));
    assert_eq!((&item["search"]["state"], &item["search"]["studies"]), (&json!("Completed"), &json!(2)));
    assert_eq!(told["items"].as_array().unwrap().len(), 1, "{told}");
    let for_people = program.run(&since).stdout;
    assert!(
        for_people.contains("Gambling harms") && for_people.contains("1 change; continue with"),
        "{for_people}"
    );
    assert_eq!(program.run(&["delete", &id]).code, Some(0));
    let since = ["changes", "--since", told["next"].as_str().unwrap()];
    let told = program.run(&[&since[..], &["--json"]].concat()).json();
    assert_eq!(told["items"], json!([{ "search_id": id, "deleted": true, "search": null }]));
    let of_other = program.run(&[&since[..], &["--project", "other"]].concat());
    assert!(of_other.stderr.contains("--since is not a cursor"), "{}", of_other.stderr);
}

#[test]
fn searches_of_all_projects_are_ordered_by_age() {
    let program = Program::new();
    import(&program, "one", &["--project", "first"]);
    import(&program, "two", &["--project", "second"]);
    assert_eq!(names(&program, &["--all"]), ["two", "one"], "they have ended: the latest first");
    assert_eq!(names(&program, &["--all", "--state", "completed", "--limit", "1"]), ["two"]);
    assert_eq!(names(&program, &["--all", "--state", "parsing"]), [""; 0]);
    assert_eq!(names(&program, &["--all", "--older-than", "2h"]), [""; 0]);
    assert_eq!(names(&program, &["--project", "first", "--older-than", "0"]), ["one"]);
    assert_eq!(names(&program, &["--project", "first", "--older-than", "1d"]), [""; 0]);
    let table = program.run(&["searches", "--all"]).stdout;
    assert!(
        table.ends_with("2 imports\n") && table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    assert_eq!(program.run(&["searches", "--all", "--project", "first"]).code, Some(2));
    let run = program.run(&["searches", "--older-than", "soon"]);
    assert_eq!((run.code, run.stderr.contains("such as 2h")), (Some(2), true), "{}", run.stderr);
}
