//! The benchmarks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::program::Program;

/// The bounds of the design: DynamoDB and MongoDB calls for one message, by mode and situation.
const BOUNDS: [(&str, &str, f64, f64); 15] = [
    ("ledger", "creation", 1.0, 2.0),
    ("ledger", "duplicate", 0.0, 1.0),
    ("ledger", "transition, nothing to send", 1.0, 2.0),
    ("ledger", "transition that starts parsing", 1.0, 3.0),
    ("ledger", "transition, a file reported", 1.0, 2.0),
    ("ledger", "transition that ends the search", 2.0, 3.0),
    ("ledger", "all five messages of a search", 1.2, 2.4),
    ("ledger", "duplicate after the end", 1.0, 1.0),
    ("ledger", "batch of 10 searches", 1.0, 0.4),
    ("optimistic", "creation", 0.0, 2.0),
    ("optimistic", "transition, nothing to send", 0.0, 2.0),
    ("optimistic", "transition that starts parsing", 0.0, 3.0),
    ("optimistic", "transition, a file reported", 0.0, 2.0),
    ("optimistic", "transition that ends the search", 0.0, 3.0),
    ("optimistic", "batch of 10 searches", 0.0, 0.4),
];

#[test]
fn calls_per_message_stay_within_bounds() {
    let program = Program::new();
    let folder = program.folder().join("bench");
    let run = program.run(&["bench", "calls", "--json", "--dir", folder.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rows: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    for (mode, situation, dynamodb, mongodb) in BOUNDS {
        let row = rows.iter().find(|row| row["mode"] == mode && row["situation"] == situation);
        let row = row.unwrap_or_else(|| panic!("{mode}: {situation} is not measured"));
        let per_message = |calls: &str| row[calls].as_f64().unwrap() / row["messages"].as_f64().unwrap();
        assert!(per_message("dynamodb") <= dynamodb && per_message("mongodb") <= mongodb, "{row}");
    }
}

#[test]
fn messages_of_many_searches_take_effect_once() {
    for mode in ["ledger", "optimistic"] {
        let program = Program::new();
        let folder = program.folder().join("bench");
        let dir = folder.to_str().unwrap();
        let run = program.run(&["bench", "saga", "--sagas", "40", "--mode", mode, "--json", "--dir", dir]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&report["lost"], &report["duplicated"]), (&0.into(), &0.into()));
        // Five events for each search, and about three copies for every ten of them.
        assert!(report["messages"].as_u64().unwrap() > 5 * 40, "{report}");
    }
}

#[test]
fn events_over_http_take_effect_once() {
    for mode in ["ledger", "optimistic"] {
        let program = Program::new();
        let folder = program.folder().join("bench");
        let dir = folder.to_str().unwrap();
        let mut server = program.start(&["bench", "event-server", "--mode", mode, "--hops", "--dir", dir]);
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
        let run =
            program.run(&["bench", "events", "--url", &url, "--sagas", "40", "--clients", "8", "--begin"]);
        let hops: Value = serde_json::from_str(&request(&url, "GET /hops")).unwrap();
        request(&url, "POST /stop");
        assert!(server.wait().unwrap().success());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&report["lost"], &report["doubled"]), (&0.into(), &0.into()));
        assert!(report["messages"].as_u64().unwrap() > 5 * 40, "{report}");
        let commits = hops.as_array().unwrap().iter().find(|hop| hop["hop"] == "commit").unwrap();
        assert!(commits["calls"].as_u64().unwrap() >= 5 * 40, "each event is stored: {hops}");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "nothing is left");
    }
}

/// Returns the body of the response.
fn request(url: &str, what: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{what} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn sweep_is_measured_with_few_and_many_records() {
    let program = Program::new();
    let folder = program.folder().join("bench");
    let run =
        program.run(&["bench", "sweep", "--settled", "2000", "--json", "--dir", folder.to_str().unwrap()]);
    // The speed is not checked, because other programs use this machine.
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["settled"].as_u64().unwrap()).collect::<Vec<_>>(), [1_000, 2_000]);
    assert!(rows.iter().all(|row| row["plan"].as_str().unwrap().contains("outbox_ready")), "{report}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "nothing is left");
}

#[test]
fn every_format_is_measured_and_exported() {
    let program = Program::new();
    let folder = program.folder().join("files");
    let sizes = ["--records", "5", "40"];
    let run = program.run(&[&["bench", "parse", "--write", folder.to_str().unwrap()], &sizes[..]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2 * 7);
}

#[test]
fn cold_start_of_missing_function_fails() {
    let program = Program::new();
    let run = program.run(&["bench", "cold-start", "--functions", program.folder().to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("start-upload is not built"), "{}", run.stderr);
}
