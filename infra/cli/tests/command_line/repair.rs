//! Repairing a search on the command line.

use std::path::Path;

use serde_json::Value;

use crate::packed::packed;
use crate::program::Program;

const GOOD: &[u8] = b"TY  - JOUR\nTI  - First\nER  - \n";
const ONE_BAD: &[u8] =
    b"TY  - JOUR\nTI  - Second\nER  - \n\nTY  - JOUR\nTI  - Bad \x01\x01\x01\x01\x01 title\nER  - \n";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn repair_replaces_file_and_corrects_record() {
    let program = Program::new();
    let files = [("good.ris", GOOD), ("bad.ris", b"\x01\x02\x03"), ("half.ris", ONE_BAD)];
    let files = files.map(|(name, content)| program.file(name, content));
    let imported = program.run(&["import", text(&files[0]), text(&files[1]), text(&files[2])]);
    assert_eq!(imported.code, Some(1), "{}", imported.stderr);

    let none = program.run(&["repair", "good.ris", "--replace", "none.ris", text(&files[0])]);
    assert!(none.stderr.contains("its files are good.ris, bad.ris, half.ris"), "{}", none.stderr);
    let read = program.run(&["repair", "good.ris", "--again", "1"]);
    assert!(read.stderr.contains("good.ris: the file was read completely"), "{}", read.stderr);
    let still = program.run(&["retry", "good.ris", "--json", "--search-name", "tried again"]);
    assert_eq!((still.code, &still.json()["state"]), (Some(1), &"Error".into()), "{}", still.stderr);

    assert_eq!(program.run(&["prisma", "--json"]).json()["failed_files"], 1);

    let better = program.file("better.ris", GOOD);
    let replaced = program.run(&[
        "repair",
        "tried again",
        "--replace",
        "bad.ris",
        text(&better),
        "--search-name",
        "two",
    ]);
    assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);
    assert!(replaced.stdout.contains("repairs import"), "{}", replaced.stdout);
    let again = program.run(&["repair", "good.ris", "--replace", "bad.ris", text(&better)]);
    assert!(again.stderr.contains("reads the file again"), "{}", again.stderr);

    let out = program.folder().join("unread.ris");
    assert_eq!(program.run(&["quarantine", "good.ris", "--out", text(&out)]).code, Some(0));
    let unread = std::fs::read_to_string(&out).unwrap();
    std::fs::write(&out, unread.replace("\u{1}\u{1}\u{1}\u{1}\u{1}", "no")).unwrap();
    let corrected =
        program.run(&["repair", "good.ris", "--correct", "half.ris", text(&out), "--search-name", "three"]);
    assert_eq!(corrected.code, Some(0), "{}", corrected.stderr);
    let none = program.run(&["repair", "good.ris", "--mend", "half.ris", text(&out)]);
    assert!(none.stderr.contains("there is nothing to correct"), "{}", none.stderr);

    let shown = program.run(&["show", "good.ris", "--json"]).json();
    assert_eq!(shown["repaired_by"].as_array().unwrap().len(), 2, "{shown}");
    let repair = program.run(&["show", "two", "--json"]).json();
    assert_eq!(repair["job"]["repairs"], shown["job"]["search_id"]);
}

/// The repair has the name of its original.
#[test]
fn corrected_record_is_listed_with_its_import() {
    let program = Program::new();
    let half = program.file("half.ris", ONE_BAD);
    program.run(&["import", text(&half)]);
    let better = program.file("better.ris", &[GOOD, b"TY  - JOUR\nTI  - Third\nER  - \n"].concat());
    let refused = program.run(&["export", "half.ris", "--format", "ris", "--out", "-"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("standard output"), "{}", refused.stderr);
    let corrected =
        program.run(&["repair", "half.ris", "--correct", "half.ris", text(&better), "--records", "2"]);
    assert_eq!(corrected.code, Some(0), "{}", corrected.stderr);
    let titles: Vec<Value> = program.run(&["studies", "half.ris", "--json"]).lines();
    assert_eq!(titles.len(), 3, "{titles:?}");
    let out = program.folder().join("all.ris");
    let exported =
        program.run(&["export", "half.ris", "--format", "ris", "--out", text(&out), "--json"]).json();
    assert_eq!(exported[0]["studies"], 3, "{exported}");
}

/// A file that was written before another correction contains the record of that correction too.
#[test]
fn record_corrected_meanwhile_is_not_imported_twice() {
    let program = Program::new();
    let table = |rows: &str| format!("Title;Year\n{rows}").into_bytes();
    let file = program.file("table.csv", &table("a;2001\nd;2004\ne;2005\nb;2002;x;y\nc;2003;x;y\n"));
    let (report, _) = program.import(&[file], &[]);
    let search = report["search_id"].as_str().unwrap();
    let quarantine = |name: &str| {
        let out = program.folder().join(name);
        let written = program.run(&["quarantine", search, "--out", text(&out), "--json"]).json();
        (written, out)
    };
    let correct = |file: &Path, more: &[&str]| {
        program.run(&[&["repair", search, "--correct", "table.csv", text(file)], more].concat())
    };
    let (written, both) = quarantine("both.csv");
    assert_eq!((&written[0]["records"], &written[0]["numbers"]), (&2.into(), &Value::Null), "{written}");
    std::fs::write(&both, table("b;2002\nc;2003\n")).unwrap();
    let second = program.file("second.csv", &table("b;2002\n"));
    let unknown = correct(&second, &["--records", "1"]);
    assert!(unknown.stderr.contains("record 1 of table.csv is not among"), "{}", unknown.stderr);
    assert_eq!(correct(&second, &["--records", "4"]).code, Some(0));

    for more in [&[] as &[&str], &["--records", "4-5"]] {
        let refused = correct(&both, more);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("record 4 of table.csv is corrected by import"),
            "{}",
            refused.stderr
        );
    }
    let (written, third) = quarantine("third.csv");
    assert_eq!((&written[0]["records"], &written[0]["numbers"]), (&1.into(), &"5".into()), "{written}");
    assert_eq!(std::fs::read(&third).unwrap(), table("c;2003;x;y\n"));
    std::fs::write(&third, table("c;2003\n")).unwrap();
    assert_eq!(correct(&third, &["--records", "5"]).code, Some(0));
    let (written, none) = quarantine("none.csv");
    assert!(written.as_array().unwrap().is_empty() && !none.exists(), "{written}");
}

/// The corrected records of one part must not replace those of another.
#[test]
fn parts_of_packed_file_are_corrected_one_by_one() {
    let program = Program::new();
    let archive = program.file("both.zip", &packed(&[("a.ris", ONE_BAD), ("old/b.ris", ONE_BAD)]));
    let (report, _) = program.import(&[archive], &[]);
    let search = report["search_id"].as_str().unwrap();
    let folder = program.folder().join("unread");
    std::fs::create_dir(&folder).unwrap();
    let written = program.run(&["quarantine", search, "--out", text(&folder), "--json"]).json();
    let (a, b) = ("both.zip (a.ris)", "both.zip (old_b.ris)");
    assert_eq!((&written[0]["name"], &written[1]["name"]), (&a.into(), &b.into()), "{written}");
    let outs = [&written[0], &written[1]].map(|file| file["out"].as_str().unwrap());
    for out in outs {
        let unread = std::fs::read_to_string(out).unwrap();
        std::fs::write(out, unread.replace("\u{1}\u{1}\u{1}\u{1}\u{1}", "no")).unwrap();
    }
    let correct = |files: &[[&str; 2]]| {
        let options = files.iter().flat_map(|[file, new]| ["--correct", *file, *new]);
        program.run(&["repair", search].into_iter().chain(options).collect::<Vec<_>>())
    };

    let whole = correct(&[["both.zip", outs[0]]]);
    assert_eq!(whole.code, Some(1), "{}", whole.stderr);
    assert!(whole.stderr.contains(&format!("name the corrected part instead: {a}, {b}")), "{}", whole.stderr);
    let twice = correct(&[[a, outs[0]], [b, outs[1]]]);
    assert!(twice.stderr.contains(&format!("correct {b} with another repair")), "{}", twice.stderr);
    let first = correct(&[[a, outs[0]]]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let again = correct(&[[a, outs[0]]]);
    assert!(again.stderr.contains("there is nothing to correct"), "{}", again.stderr);
    let rest = correct(&[["1", outs[0]]]);
    assert!(rest.stderr.contains(&format!("name the corrected part instead: {b}")), "{}", rest.stderr);
    let second = correct(&[[b, outs[1]]]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    let none = correct(&[["both.zip", outs[1]]]);
    assert!(none.stderr.contains("there is nothing to correct"), "{}", none.stderr);
    let shown = program.run(&["show", search, "--json"]).json();
    assert_eq!(shown["repaired_by"].as_array().unwrap().len(), 2, "{shown}");
}
