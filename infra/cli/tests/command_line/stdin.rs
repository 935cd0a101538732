//! A file from standard input.

use serde_json::json;

use crate::program::{Program, bundled};

/// Returns the number of unexpected files in the data directory.
fn left_over(program: &Program) -> usize {
    let Ok(entries) = std::fs::read_dir(program.data()) else { return 0 };
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("stdin")).count()
}

#[test]
fn standard_input_is_imported_with_other_files() {
    let program = Program::new();
    let content = std::fs::read(bundled("broken.ris")).unwrap();
    let other = bundled("psycinfo.ris");
    let args = ["import", "-", other.to_str().unwrap(), "--json"];
    let report = program.run_with_input(&args, &content).json();
    assert_eq!((&report["state"], &report["studies"]), (&json!("Completed"), &json!(5)), "{report}");
    assert_eq!(
        (&report["files"][0]["name"], &report["files"][0]["quarantined"]),
        (&json!("stdin"), &json!(1))
    );
    let named = program.run_with_input(&["import", "-", "--name", "mine.ris", "--json"], &content).json();
    assert_eq!(named["files"][0]["name"], "mine.ris");
    assert_eq!(left_over(&program), 0);
}

#[test]
fn invalid_standard_input_leaves_no_file() {
    let program = Program::new().setting("SEARCH_IMPORT_MAX_FILE_BYTES", "4000");
    let large = vec![b'x'; 1_000_000];
    for (content, why) in
        [(&[] as &[u8], "stdin: the file is empty"), (&large, "larger than the limit of 4000")]
    {
        let run = program.run_with_input(&["import", "-"], content);
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains(why), "{}", run.stderr);
        assert_eq!(left_over(&program), 0);
    }
    let nameless = program.run(&["import", "x.ris", "--name", "y.ris"]);
    assert_eq!(nameless.code, Some(2));
    let twice = program.run_with_input(&["import", "-", "-"], b"TY  - JOUR");
    assert_eq!(twice.code, Some(2));
    assert!(twice.stderr.contains("standard input can be read once"), "{}", twice.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn terminal_as_standard_input_is_rejected() {
    let program = Program::new();
    let run = program.run_at_terminal(&["import", "-"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stdout.contains("search-import import - < FILE"), "{}", run.stdout);
}
