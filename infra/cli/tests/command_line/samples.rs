//! Importing every bundled sample, and real exports if a folder of them is available.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::program::{Program, bundled};

#[test]
fn every_bundled_sample_imports() {
    let expected = [
        ("psycinfo.ris", "RIS", 3),
        ("pubmed.nbib", "PubMed nbib", 3),
        ("endnote.xml", "EndNote XML", 3),
        ("embase.csv", "CSV", 3),
        ("scopus-semicolon.csv", "CSV (semicolon)", 2),
        ("library.tsv", "TSV", 2),
        ("windows-1252.ris", "RIS", 2),
        ("utf-16.ris", "RIS", 1),
    ];
    let files: Vec<PathBuf> = expected.iter().map(|(name, _, _)| bundled(name)).collect();
    let (report, run) = Program::new().import(&files, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (file, (name, format, studies)) in report["files"].as_array().unwrap().iter().zip(expected) {
        assert_eq!(file["name"], name);
        assert_eq!((&file["format"], &file["studies"]), (&json!(format), &json!(studies)), "{name}");
    }
}

#[test]
fn unreadable_record_is_quarantined_alone() {
    let program = Program::new();
    let (report, run) = program.import(&[bundled("broken.ris")], &[]);
    assert_eq!(run.code, Some(0));
    assert_eq!(report["files"][0]["studies"], 2);
    assert_eq!(report["files"][0]["quarantined"], 1);
    let shown = program.run(&["show", report["search_id"].as_str().unwrap(), "--json"]).json();
    let record = &shown["quarantined"][0]["record"];
    assert_eq!(record["number"], 2);
    assert!(record["line"].is_u64() && record["bytes"]["start"].is_u64() && record["reason"].is_string());
}

/// Returns the path of a real export, which is not part of the repository.
fn real(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SHARED_SAMPLES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples"), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        println!("skipped: {} is not here", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn real_exports_import_separately_and_together() {
    let counts = [("psycinfo_124.ris", 124), ("pubmed_176.ris", 176), ("zotero_export.xml", 1_233)];
    let mut files = Vec::new();
    for (name, studies) in counts {
        let Some(path) = real(name) else { return };
        let (report, run) = Program::new().import(std::slice::from_ref(&path), &[]);
        assert_eq!((run.code, &report["studies"]), (Some(0), &json!(studies)), "{name}");
        files.push(path);
    }
    let (report, _) = Program::new().import(&files, &["--duplicate", "3", "--shuffle", "7"]);
    assert_eq!(report["state"], "Completed");
    assert_eq!(report["studies"], 124 + 176 + 1_233);
    assert_eq!(report["messages"]["parse_commands"], 3);
}

#[test]
fn benchmark_files_are_imported() {
    let program = Program::new();
    dev::bench::parse::write(program.folder(), [5, 40]).unwrap();
    let files = ["40.ris", "5.endnote.xml"].map(|name| program.folder().join(name));
    let (report, _) = program.import(&files, &[]);
    assert_eq!(report["studies"], 45);
}
