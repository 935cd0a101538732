//! Data directories that the program refuses to work in, and leaves unchanged.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;

use crate::program::{Program, bundled};

const DATABASE: &str = "search-import.sqlite";

/// Returns a program whose data directory has a completed import.
fn used() -> Program {
    let program = Program::new();
    let (report, run) = program.import(&[bundled("psycinfo.ris")], &[]);
    assert_eq!(report["state"], "Completed", "{}", run.stderr);
    program
}

/// Returns the number of object files.
fn objects(program: &Program) -> usize {
    fs::read_dir(program.data().join("objects")).unwrap().count()
}

/// Checks that every command that works in a data directory rejects this one with one line without SQL. Returns the
/// last line.
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
fn lost_database_keeps_uploads() {
    let program = used();
    let place = |folder: &std::path::Path, end: &str| folder.join(format!("{DATABASE}{end}"));
    let (data, backup) = (program.data(), program.folder().to_owned());
    // The latest writes may still be in the log.
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
fn foreign_database_is_rejected_in_one_line() {
    let program = used();
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(program.data().join(format!("{DATABASE}{end}")));
    }
    fs::write(program.data().join(DATABASE), "TY  - JOUR\n".repeat(1_000)).unwrap();
    let said = refused(&program);
    assert!(said.contains("is not a database of this program") && said.contains(DATABASE), "{said}");
    assert_eq!(objects(&program), 1);
}

#[cfg(unix)]
#[test]
fn linked_objects_folder_is_rejected_in_one_line() {
    let program = used();
    let precious = program.folder().join("elsewhere");
    fs::rename(program.data().join("objects"), &precious).unwrap();
    fs::write(precious.join("notes.txt"), "precious").unwrap();
    std::os::unix::fs::symlink(&precious, program.data().join("objects")).unwrap();
    let said = refused(&program);
    assert!(said.contains("objects is a symbolic link"), "{said}");
    assert_eq!(fs::read_dir(precious).unwrap().count(), 2);
}

/// A server, which is killed when this value is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
#[test]
fn second_program_is_rejected_without_lock_file() {
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
fn data_is_readable_by_its_owner_only() {
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
