//! A full disk: commands report it with the next step, and no data is lost.

use crate::program::{Program, Run, bundled};

/// A file size limit simulates a disk without space for the write-ahead log.
#[test]
fn import_resumes_after_disk_space_is_freed() {
    let program = Program::new();
    program.import(&[bundled("psycinfo.ris")], &[]);
    let text: String = (0..100).map(|n| format!("Sentence {n}. ")).collect();
    let record = |n: usize| format!("TY  - JOUR\nTI  - Title {n}\nAB  - {n} {text}\nER  - \n");
    let file = program.file("many.ris", (0..400).map(record).collect::<String>().as_bytes());
    let import = program.start_with_space(&["import", file.to_str().unwrap()], 640 << 10);
    let import = import.wait_with_output().unwrap();
    let said = String::from_utf8(import.stderr).unwrap();
    assert_eq!(import.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("the disk of ") && last.contains("free some space, then `"), "{said}");
    let resumed = program.run(&["resume", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_eq!(resumed.json()["studies"], 400);
}

/// Runs a script with a temporary file system of a few MiB as the data directory of `$PROGRAM`.
fn on_a_small_disk(program: &Program, script: &str) -> Option<Run> {
    let data = program.data();
    std::fs::create_dir(&data).unwrap();
    let setup = "mount -t tmpfs -o size=3m none \"$SEARCH_IMPORT_DATA_DIR\" || exit 99\n";
    let run = program.run_in_namespace(&format!("{setup}{script}"));
    (run.code != Some(99) && !run.stderr.contains("unshare")).then_some(run)
}

#[test]
fn health_reports_full_disk() {
    let program = Program::new();
    let script = format!(
        "\"$PROGRAM\" import '{file}' --search-name before >/dev/null 2>&1 || exit 98
         cat /dev/zero > \"$SEARCH_IMPORT_DATA_DIR/filler\" 2>/dev/null
         \"$PROGRAM\" health; echo \"health ended with $?\"
         \"$PROGRAM\" import '{file}'; echo \"import ended with $?\"
         rm \"$SEARCH_IMPORT_DATA_DIR/filler\"
         \"$PROGRAM\" import '{file}' >/dev/null 2>&1; echo \"then import ended with $?\"",
        file = bundled("psycinfo.ris").display()
    );
    let Some(run) = on_a_small_disk(&program, &script) else {
        println!("skipped: no file system can be mounted here");
        return;
    };
    let said = format!("{}\n{}", run.stdout, run.stderr);
    assert!(!run.stdout.contains("no problems found"), "{said}");
    for text in ["health ended with 1", "import ended with 1", "then import ended with 0"] {
        assert!(run.stdout.contains(text), "{text}: {said}");
    }
    assert!(run.stderr.contains("free some space"), "{said}");
}
