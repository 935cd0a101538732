//! Duplicates, reordering, crashes and kills store the same studies, each once.

use serde_json::Value;

use crate::program::{Program, bundled};

/// Returns the studies of a search, in order.
fn studies(program: &Program, report: &Value) -> Vec<(String, u64)> {
    let listed = program.run(&["studies", report["search_id"].as_str().unwrap(), "--json"]).lines();
    let source = |study: &Value| {
        let source = &study["source"];
        (source["file"].as_str().unwrap().to_owned(), source["record"].as_u64().unwrap())
    };
    listed.iter().map(source).collect()
}

fn files() -> Vec<std::path::PathBuf> {
    ["psycinfo.ris", "pubmed.nbib", "endnote.xml"].map(bundled).to_vec()
}

fn check(program: &Program, report: &Value) {
    assert_eq!(report["state"], "Completed", "{report}");
    assert_eq!(report["studies"], 9, "{report}");
    assert_eq!(report["messages"]["parse_commands"], 3, "{report}");
    let expected: Vec<(String, u64)> = ["psycinfo.ris", "pubmed.nbib", "endnote.xml"]
        .iter()
        .flat_map(|name| (1..=3).map(|record| ((*name).to_owned(), record)))
        .collect();
    assert_eq!(studies(program, report), expected);
}

#[test]
fn shuffled_duplicates_change_no_study() {
    let program = Program::new();
    for seed in 1..=5 {
        let seed = seed.to_string();
        let (report, run) = program.import(&files(), &["--duplicate", "3", "--shuffle", &seed]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(report["messages"]["duplicates_dropped"].as_u64() > Some(0));
        check(&program, &report);
    }
}

#[test]
fn crashes_change_no_study() {
    let program = Program::new();
    for seed in 1..=50 {
        let seed = seed.to_string();
        let (report, run) = program.import(&files(), &["--crash", &seed]);
        assert_eq!(run.code, Some(0), "seed {seed}: {}", run.stderr);
        check(&program, &report);
    }
}

#[test]
fn optimistic_mode_stores_the_same_studies() {
    let program = Program::new().setting("SEARCH_IMPORT_MODE", "optimistic");
    for seed in 1..=5 {
        let seed = seed.to_string();
        let (report, run) =
            program.import(&files(), &["--duplicate", "3", "--shuffle", &seed, "--crash", &seed]);
        assert_eq!(run.code, Some(0), "seed {seed}: {}", run.stderr);
        assert_eq!(report["studies"], 9);
        assert_eq!(studies(&program, &report).len(), 9);
    }
}

#[test]
fn resume_finishes_killed_import() {
    let program = Program::new();
    let large = large_file(&program);
    let args = ["import", large.to_str().unwrap(), "--json"];
    // Kill the program after a little more progress each time, which the data directory shows.
    let mut begun = 0;
    for writes in 1..=6 {
        let mut child = program.start(&args);
        begun += usize::from(wait_for_progress(&program, &mut child, writes * 40_000));
        // The program may have finished already.
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(begun > 0, "every run ended before it could be killed");
    let resumed = program.run(&["resume", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    for report in resumed.lines() {
        assert_eq!((&report["state"], &report["studies"]), (&"Completed".into(), &2_000.into()), "{report}");
        assert_eq!(report["messages"]["parse_commands"], 1, "{report}");
        assert_eq!(studies(&program, &report).len(), 2_000);
    }
    let again = program.run(&["resume", "--json"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "nothing is left to resume");
}

/// Creates a file whose import takes long enough to be killed in the middle.
fn large_file(program: &Program) -> std::path::PathBuf {
    let record = |n: u32| format!("TY  - JOUR\nTI  - Title {n}\nAU  - Author, {n}\nPY  - 2020\nER  - \n\n");
    program.file("large.ris", (0..2_000).map(record).collect::<String>().as_bytes())
}

/// Waits until the write-ahead log has grown by `bytes`. Returns `false` if the program ended first.
fn wait_for_progress(program: &Program, child: &mut std::process::Child, bytes: u64) -> bool {
    let log = program.folder().join("data/search-import.sqlite-wal");
    let size = || std::fs::metadata(&log).map_or(0, |facts| facts.len());
    let before = size();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if size().abs_diff(before) >= bytes {
            return true;
        }
        std::thread::yield_now();
    }
}

#[test]
fn resume_finishes_interrupted_uploads() {
    let program = Program::new();
    let large = large_file(&program);
    let mut child = program.start(&["import", large.to_str().unwrap(), "--json"]);
    // The import's first write stores the pending uploads.
    wait_for_progress(&program, &mut child, 1);
    let _ = child.kill();
    child.wait().unwrap();
    let resumed = program.run(&["resume", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    for report in resumed.lines() {
        assert_eq!(report["studies"], 2_000);
    }
}

#[test]
fn data_directory_admits_one_program() {
    let program = Program::new();
    let data = program.folder().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let lock = std::fs::File::create(data.join("lock")).unwrap();
    lock.try_lock().unwrap();
    let run = program.run(&["import", bundled("psycinfo.ris").to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("in use"), "{}", run.stderr);
}
