//! Bad input: one line for each file, exit code 1, and no partial data.

use crate::program::{Program, bundled};

/// Imports a good file together with a bad one that the parser rejects. Returns the error.
fn refused_by_the_parser(program: &Program, name: &str, content: &[u8]) -> String {
    let bad = program.file(name, content);
    let (report, run) = program.import(&[bundled("psycinfo.ris"), bad], &[]);
    assert_eq!(run.code, Some(1), "{name}");
    assert_eq!(report["state"], "Error");
    assert_eq!(report["files"][0]["outcome"], "completed", "the other file is reported too");
    assert_eq!(report["files"][1]["outcome"], "failed");
    let error = report["files"][1]["error"].as_str().unwrap().to_owned();
    assert_eq!(run.stderr.trim_end(), format!("error: {name}: {error}"), "one line");
    let studies = program.run(&["studies", report["search_id"].as_str().unwrap(), "--json"]).lines();
    assert!(studies.iter().all(|study| study["source"]["file"] == "psycinfo.ris"));
    error
}

#[test]
fn other_file_types_are_named() {
    let program = Program::new();
    for (name, content, reason) in [
        ("noise.ris", b"\x00\x01\x02\xff\xfe\x00binary\x00".as_slice(), "binary"),
        ("paper.pdf", b"%PDF-1.7\n1 0 obj", "PDF"),
        ("archive.ris", b"PK\x03\x04\x14\x00\x00\x00", "ZIP"),
        ("letter.txt", b"Dear reviewer, this is a letter.", "no known reference format"),
        ("none.xml", b"<?xml version=\"1.0\"?><xml><records></records></xml>", "no records"),
        (
            "bomb.xml",
            b"<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"a\">]><xml><records><record/></records></xml>",
            "DOCTYPE",
        ),
    ] {
        let error = refused_by_the_parser(&program, name, content);
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn record_over_the_limit_fails_the_file() {
    let program = Program::new().setting("SEARCH_IMPORT_MAX_RECORD_BYTES", "5000");
    let long = format!("TY  - JOUR\nTI  - Fine\nER  - \n\nTY  - JOUR\nAB  - {}\nER  - \n", "x".repeat(6_000));
    let error = refused_by_the_parser(&program, "long.ris", long.as_bytes());
    assert!(error.contains("record 2") && error.contains("5000"), "{error}");
}

/// Imports a good file together with one that is rejected before anything is stored.
fn refused_at_once(program: &Program, bad: &std::path::Path, reason: &str) {
    let (report, run) = program.import(&[bundled("psycinfo.ris"), bad.to_owned()], &[]);
    assert_eq!(run.code, Some(1));
    assert!(report["search_id"].is_null());
    assert_eq!(report["files"][0]["outcome"], "not imported");
    assert_eq!(report["files"][1]["outcome"], "refused");
    assert!(report["files"][1]["error"].as_str().unwrap().contains(reason), "{report}");
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(program.run(&["resume", "--json"]).stdout.is_empty(), "nothing was begun");
}

#[test]
fn failed_upload_stores_nothing() {
    let program = Program::new().setting("SEARCH_IMPORT_MAX_FILE_BYTES", "4000");
    refused_at_once(&program, &program.file("empty.ris", b""), "empty");
    refused_at_once(&program, program.folder(), "directory");
    let missing = program.folder().join("missing.ris");
    refused_at_once(&program, &missing, "no such file");
    let for_people = program.run(&["import", missing.to_str().unwrap()]);
    assert_eq!(for_people.stdout, "nothing was imported\n", "there is nothing that a table could say");
    refused_at_once(
        &program,
        &program.file("large.ris", &vec![b' '; 4_001]),
        "larger than the limit of 4000",
    );
}

#[test]
fn search_name_too_long_for_uploads_stores_nothing() {
    let program = Program::new();
    let import =
        |characters| program.import(&[bundled("psycinfo.ris")], &["--search-name", &"検".repeat(characters)]);
    let (report, run) = import(223);
    assert_eq!((run.code, report["search_id"].is_null()), (Some(1), true));
    assert_eq!(
        run.stderr,
        "error: the import's name takes 2007 bytes with all but ASCII letters and digits percent-encoded, and an upload's \
         metadata allows 1999\n"
    );
    assert_eq!(import(222).1.code, Some(0));
}

#[test]
fn wrong_usage_exits_with_2() {
    let program = Program::new();
    for args in
        [&["import"] as &[&str], &["import", "x", "--project", ""], &["frobnicate"], &["import", "-", "-"]]
    {
        assert_eq!(program.run(args).code, Some(2), "{args:?}");
    }
}

#[test]
fn invalid_setting_is_named() {
    let program = Program::new().setting("SEARCH_IMPORT_MODE", "perhaps");
    let run = program.run(&["import", bundled("psycinfo.ris").to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("SEARCH_IMPORT_MODE"), "{}", run.stderr);
}

#[cfg(not(feature = "services"))]
#[test]
fn program_without_aws_names_the_build_command() {
    let program = Program::new();
    for args in [["import", bundled("psycinfo.ris").to_str().unwrap()], ["resume", "--json"]] {
        let run = program.run(&[&args[..], &["--backend", "aws"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(
            run.stderr.contains("--features services") && run.stderr.lines().count() == 1,
            "{}",
            run.stderr
        );
    }
}

#[test]
fn unknown_search_is_an_error() {
    let program = Program::new();
    program.import(&[bundled("psycinfo.ris")], &[]);
    for command in ["show", "studies"] {
        let run = program.run(&[command, "00000000-0000-0000-0000-000000000001"]);
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains("there is no import"), "{}", run.stderr);
    }
}
