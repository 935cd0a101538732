//! What the program says of a data directory that it does not work in, and does to it: nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;

use crate::program::{Program, bundled};

const DATABASE: &str = "search-import.sqlite";

/// A data directory with an import that completed.
fn used() -> Program {
    let program = Program::new();
    let (report, run) = program.import(&[bundled("psycinfo.ris")], &[]);
    assert_eq!(report["state"], "Completed", "{}", run.stderr);
    program
}

/// How many files of objects there are.
fn objects(program: &Program) -> usize {
    fs::read_dir(program.data().join("objects")).unwrap().count()
}

/// Each command that works in a data directory refuses this one with one line, without SQL. Returns the last one.
fn refused(program: &Program) -> String {
    let file = bundled("psycinfo.ris");
    let commands: [&[&str]; 3] =
        [&["import", file.to_str().unwrap()], &["resume"], &["serve", "--listen", "127.0.0.1:0"]];
    let mut said = String::new();
    for command in commands {
        let run = program.run(command);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{command:?}: {}", run.stderr);
        said = run.stderr.trim_end().to_owned();
        assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
        assert!(!said.contains("SELECT") && !said.contains("CREATE"), "{command:?}: {said}");
    }
    said
}

#[test]
fn a_lost_database_costs_no_upload() {
    let program = used();
    let place = |folder: &std::path::Path, end: &str| folder.join(format!("{DATABASE}{end}"));
    let (data, backup) = (program.data(), program.folder().to_owned());
    // What was stored last may be in the log still.
    let files = ["", "-wal", "-shm"].map(|end| (place(&data, end), place(&backup, end)));
    for (file, kept) in files.iter().filter(|(file, _)| file.exists()) {
        fs::rename(file, kept).unwrap();
    }
    let said = refused(&program);
    assert!(said.contains("is missing or empty") && said.contains("from a backup"), "{said}");
    assert_eq!(objects(&program), 1);
    for (file, kept) in files.iter().filter(|(_, kept)| kept.exists()) {
        fs::rename(kept, file).unwrap();
    }
    let run = program.run(&["resume"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(objects(&program), 1);
}

#[test]
fn a_database_that_is_something_else_is_refused_in_one_line() {
    let program = used();
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(program.data().join(format!("{DATABASE}{end}")));
    }
    fs::write(program.data().join(DATABASE), "TY  - JOUR\n".repeat(1_000)).unwrap();
    let said = refused(&program);
    assert!(said.contains("is not a database of search import") && said.contains(DATABASE), "{said}");
    assert_eq!(objects(&program), 1);
}

#[cfg(unix)]
#[test]
fn a_folder_of_objects_that_is_a_link_is_refused_in_one_line() {
    let program = used();
    let precious = program.folder().join("elsewhere");
    fs::rename(program.data().join("objects"), &precious).unwrap();
    fs::write(precious.join("notes.txt"), "precious").unwrap();
    std::os::unix::fs::symlink(&precious, program.data().join("objects")).unwrap();
    let said = refused(&program);
    assert!(said.contains("objects is a symbolic link"), "{said}");
    assert_eq!(fs::read_dir(precious).unwrap().count(), 2);
}

/// A server. It is killed when this value ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_second_program_is_kept_out_whatever_became_of_the_lock_file() {
    let program = Program::new();
    let mut server = Server(program.start(&["serve", "--listen", "127.0.0.1:0"]));
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("working in") || line.contains("answering at")));
    fs::remove_file(program.data().join("lock")).unwrap();
    let said = refused(&program);
    assert!(said.contains("is in use by another process"), "{said}");
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_what_was_imported() {
    use std::os::unix::fs::PermissionsExt;

    let program = used();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folders = [program.data(), program.data().join("objects")];
    for folder in &folders {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(folders.contains(&path) || mode(&path) == 0o600, "{}", path.display());
        }
    }
}
