//! The table and the diagram of the state machine, drawn by running it.
//!
//! [`rows`] puts every state through every event, in each situation that makes a difference, and writes down
//! what [`transition`] answers. What the documents show is therefore what the code does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use messages::{MessageId, Payload};
use saga::Effect;

use super::deadlines::Deadlines;
use super::decision::Decision;
use super::event::{Event, Moment};
use super::state::State;
use super::transition::transition;
use crate::messages::{
    ObjectRef, ParseCommand, ParseTimeout, ReferenceFileFaulted, ReferenceFileParsingCompleted, SearchEvent,
    SearchUploadSaved, SearchUploadStarted, SearchWithdrawn, StartParsingFaulted, UploadTimeout,
    UploadsFound,
};
use crate::{Counts, FileId, Manifest, ManifestFile, ProjectId, SearchId, TimeoutId, UploadMetadata};

/// What happens in one situation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The state.
    pub from: &'static str,
    /// The event.
    pub event: &'static str,
    /// What makes this situation another one than its neighbours.
    pub when: &'static str,
    /// The answer.
    pub answer: Answer,
}

/// The answer of a [`Row`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To which state, with which effects.
    Advance {
        /// The next state's name.
        to: &'static str,
        /// The effects' names, in order, repeated ones counted.
        effects: String,
    },
    /// Nothing changes.
    Ignore(String),
    /// To the dead-letter queue.
    Reject(String),
}

/// Every situation, in the order of states and events.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (variant, state) in situations() {
        for (when, kinds, event) in events() {
            if kinds.contains(&variant) {
                rows.push(Row {
                    from: state.name(),
                    event: event.kind().name,
                    when,
                    answer: answer(happens(&state, &event)),
                });
            }
        }
    }
    rows.sort_by_key(|row| (rank(row.from), event_rank(row.event)));
    rows
}

fn answer(decision: Decision) -> Answer {
    match decision {
        Decision::Advance(advance) => {
            Answer::Advance { to: advance.next.name(), effects: count_names(&advance.effects) }
        }
        Decision::Ignore { why } => Answer::Ignore(why),
        Decision::Reject { why } => Answer::Reject(why),
    }
}

fn count_names(effects: &[Effect]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in effects.iter().map(name_of) {
        match counted.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => counted.push((name, 1)),
        }
    }
    let texts =
        counted.into_iter().map(|(name, n)| if n == 1 { name.to_owned() } else { format!("{name} ×{n}") });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "remember it".to_owned() } else { texts.join(", ") }
}

fn name_of(effect: &Effect) -> &str {
    match effect {
        Effect::Show => "write job",
        Effect::Ask { body, .. } if body.name == START_PARSING => "start parsing",
        Effect::Ask { body, .. } if body.name == LOOK_FOR_UPLOADS => "look for uploads",
        Effect::Send { body, .. } if body.name == TAKE_BACK_FILES => "take files back",
        Effect::Send { body, .. } | Effect::Ask { body, .. } => &body.name,
        Effect::Schedule { .. } => "schedule timeout",
        Effect::Cancel { .. } => "cancel timeout",
        Effect::Broken(why) => why,
    }
}

const START_PARSING: &str = ParseCommand::KINDS[0].name;
const LOOK_FOR_UPLOADS: &str = ParseCommand::KINDS[1].name;
const TAKE_BACK_FILES: &str = ParseCommand::KINDS[2].name;

/// The table in Markdown.
pub fn markdown() -> String {
    let mut text =
        String::from("| state | event | when | leads to | effects, or why not |\n|---|---|---|---|---|\n");
    for row in rows() {
        let (to, why) = match row.answer {
            Answer::Advance { to, effects } => (format!("**{to}**"), effects),
            Answer::Ignore(reason) => ("ignored".to_owned(), reason),
            Answer::Reject(reason) => ("rejected".to_owned(), reason),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {} | {to} | {why} |", row.from, row.event, row.when);
    }
    text
}

/// The diagram for Mermaid (<https://mermaid.js.org/syntax/stateDiagram.html>).
pub fn mermaid() -> String {
    let mut text = String::from("stateDiagram-v2\n    [*] --> Initial\n");
    for (from, to, label) in edges() {
        let _ = writeln!(text, "    {from} --> {to}: {label}");
    }
    text.push_str("    Completed --> [*]\n    Error --> [*]\n");
    text
}

/// The diagram for Graphviz (<https://graphviz.org/doc/info/lang.html>).
pub fn dot() -> String {
    let mut text = String::from("digraph saga {\n    rankdir=LR;\n    node [shape=box, style=rounded];\n");
    for (from, to, label) in edges() {
        let _ = writeln!(text, "    {from} -> {to} [label=\"{label}\"];");
    }
    text.push_str("}\n");
    text
}

/// One edge for each pair of states that some event connects, labelled with those events.
fn edges() -> Vec<(&'static str, &'static str, String)> {
    let mut edges: BTreeMap<(usize, usize), (&str, &str, BTreeSet<&str>)> = BTreeMap::new();
    for row in rows() {
        if let Answer::Advance { to, .. } = row.answer {
            let edge = edges.entry((rank(row.from), rank(to))).or_insert((row.from, to, BTreeSet::new()));
            edge.2.insert(short(row.event));
        }
    }
    let joined = |events: BTreeSet<&str>| events.into_iter().collect::<Vec<_>>().join(", ");
    edges.into_values().map(|(from, to, events)| (from, to, joined(events))).collect()
}

fn short(event: &'static str) -> &'static str {
    event.trim_start_matches("SearchUpload").trim_start_matches("Search").trim_start_matches("ReferenceFile")
}

fn rank(state: &str) -> usize {
    ["Initial", "Uploading", "Uploaded", "Parsing", "Completed", "Error"]
        .iter()
        .position(|name| *name == state)
        .unwrap_or(usize::MAX)
}

fn event_rank(event: &str) -> usize {
    let names = [
        "SearchUploadStarted",
        "SearchUploadSaved",
        "ReferenceFileParsingCompleted",
        "ReferenceFileFaulted",
        "StartParsingFaulted",
        "UploadTimeout",
        "UploadsFound",
        "ParseTimeout",
        "SearchWithdrawn",
    ];
    names.iter().position(|name| *name == event).unwrap_or(usize::MAX)
}

// --- the situations -------------------------------------------------------------------------------------

/// A state in which one event can meet different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    Initial,
    /// Announced by its manifest; nothing has arrived.
    Announced,
    /// Announced; the first of two files has arrived.
    OneOfTwo,
    /// Known from the first file's upload alone.
    OneOfTwoUnannounced,
    /// Announced; the time is up, and the store is being looked through.
    Looking,
    /// A file that says nothing of its search.
    Uploaded,
    /// The same, when the time is up.
    LookingUnannounced,
    /// Announced; since the time was up, the first file of two has arrived.
    LookOutdated,
    /// All files have arrived since.
    ParsingLook,
    Parsing,
    /// The first of two files has been read.
    LastFile,
    /// The first of two files was refused.
    LastFileAfterFault,
    Completed,
    Error,
}

use Situation::{
    Announced, Completed, Error, Initial, LastFile, LastFileAfterFault, LookOutdated, Looking,
    LookingUnannounced, OneOfTwo, OneOfTwoUnannounced, Parsing, ParsingLook, Uploaded,
};

fn situations() -> Vec<(Situation, State)> {
    let run = |events: &[SearchEvent]| {
        events.iter().fold(State::Initial, |state, event| match happens(&state, event) {
            Decision::Advance(advance) => *advance.next,
            Decision::Ignore { .. } | Decision::Reject { .. } => state,
        })
    };
    let (start, first, second) = (started(&[1, 2]), saved(1, Some(2)), saved(2, Some(2)));
    let parsing = [start.clone(), first.clone(), second.clone()];
    let then = |more: &[SearchEvent]| run(&[&parsing, more].concat());
    vec![
        (Initial, State::Initial),
        (Announced, run(std::slice::from_ref(&start))),
        (OneOfTwo, run(&parsing[..2])),
        (OneOfTwoUnannounced, run(std::slice::from_ref(&first))),
        (Looking, run(&[start.clone(), first.clone(), timeout(1)])),
        (Uploaded, run(&[saved(1, None)])),
        (LookingUnannounced, run(&[saved(1, None), timeout(1)])),
        (LookOutdated, run(&[start.clone(), timeout(1), first.clone()])),
        (ParsingLook, run(&[start.clone(), first.clone(), timeout(1), second.clone()])),
        (Parsing, then(&[])),
        (LastFile, then(&[read(1)])),
        (LastFileAfterFault, then(&[refused(1)])),
        (Completed, then(&[read(1), read(2)])),
        (Error, then(&[refused(1), read(2)])),
    ]
}

/// The events, each with what is special about it and the situations in which that makes a difference.
fn events() -> Vec<(&'static str, &'static [Situation], SearchEvent)> {
    const QUIET: &[Situation] = &[Initial, Announced, Uploaded];
    vec![
        ("valid", &[Initial], started(&[1, 2])),
        ("invalid", &[Initial], started(&[])),
        ("repeated", &[Announced], started(&[1, 2])),
        ("late, fills gaps", &[OneOfTwoUnannounced], started(&[1, 2])),
        ("bad", &[OneOfTwo], started(&[2, 3, 4])),
        ("valid, every file is here", &[Uploaded], started(&[1])),
        ("valid, a file is missing", &[Uploaded], started(&[1, 2])),
        ("bad", &[Uploaded], started(&[2])),
        ("repeated", &[Parsing], started(&[1, 2])),
        ("bad", &[Parsing], started(&[1])),
        ("", &[Completed, Error], started(&[1, 2])),
        ("the only file", &[Initial], saved(1, Some(1))),
        ("more to come", &[Initial], saved(1, Some(2))),
        ("valid key, no manifest", &[Initial], saved(1, None)),
        ("invalid", &[Initial], saved(1, Some(0))),
        ("a new file, more to come", &[Announced], saved(1, Some(2))),
        ("the last file", &[OneOfTwo], saved(2, Some(2))),
        ("a known file", &[OneOfTwo], saved(1, Some(2))),
        ("metadata missing", &[OneOfTwo], saved(2, None)),
        ("metadata invalid", &[OneOfTwo], saved(2, Some(0))),
        ("not in the manifest", &[OneOfTwo], saved(3, Some(2))),
        ("a known file", &[Uploaded], saved(1, None)),
        ("a new file, no manifest either", &[Uploaded], saved(2, None)),
        ("a new file that says how many there are", &[Uploaded], saved(2, Some(2))),
        ("metadata invalid", &[Uploaded], saved(2, Some(0))),
        ("", &[Parsing, Completed, Error], saved(1, Some(2))),
        ("", QUIET, read(1)),
        ("", QUIET, refused(1)),
        ("", QUIET, never_parsed(1)),
        ("a file that has not reported", &[Parsing], read(1)),
        ("the last file, all good", &[LastFile], read(2)),
        ("the last file, another one failed", &[LastFileAfterFault], read(2)),
        ("a file that has reported", &[LastFile], read(1)),
        ("not a file of this search", &[Parsing], read(3)),
        ("a file that has not reported", &[Parsing], refused(1)),
        ("the last file", &[LastFile], refused(2)),
        ("a file that has reported", &[LastFileAfterFault], refused(1)),
        ("a file that has not reported", &[Parsing], never_parsed(1)),
        ("the last file", &[LastFile], never_parsed(2)),
        ("a file that has reported", &[LastFile], never_parsed(1)),
        ("", &[Completed, Error], read(1)),
        ("", &[Completed, Error], refused(1)),
        ("", &[Completed, Error], never_parsed(1)),
        ("", &[Initial, Parsing, Completed, Error], timeout(1)),
        ("the one that is running", &[Announced, Uploaded], timeout(1)),
        ("an old one", &[Announced, Uploaded], timeout(9)),
        ("the look is not answered", &[Looking, LookingUnannounced], timeout(LOOKING)),
        ("", &[Initial, Parsing, Completed, Error], found(&[])),
        ("the last file", &[Looking], found(&[saved(1, Some(2)), saved(2, Some(2))])),
        ("nothing new", &[Looking, LookingUnannounced], found(&[saved(1, Some(2))])),
        ("not of this search", &[Looking], found(&[saved(3, Some(2))])),
        ("another file", &[LookingUnannounced], found(&[saved(2, None)])),
        ("a file has arrived since", &[LookOutdated], found(&[])),
        ("nobody asked", &[Announced, Uploaded], found(&[])),
        ("the files have arrived since", &[ParsingLook], found(&[])),
        ("", QUIET, parse_timeout(1)),
        ("the one that is running", &[Parsing], parse_timeout(1)),
        ("an old one", &[Parsing], parse_timeout(9)),
        ("", &[Completed, Error], parse_timeout(1)),
        ("overtakes the announcement", &[Initial], withdrawn()),
        ("", &[Announced, Uploaded, Parsing, Completed, Error], withdrawn()),
    ]
}

fn happens(state: &State, event: &SearchEvent) -> Decision {
    let id_of = |timeout: TimeoutId| MessageId::from_uuid(timeout.as_uuid());
    let cause = match event {
        // A timer's event has the timer's id.
        SearchEvent::UploadTimeout(fired) => id_of(fired.timeout_id),
        SearchEvent::ParseTimeout(fired) => id_of(fired.timeout_id),
        _ => message(1),
    };
    let event = Event { id: cause, partition: SearchId::from_uuid(id(1)), body: event };
    transition(state, &Moment { event: &event, now: Timestamp::UNIX_EPOCH, deadlines: Deadlines::default() })
}

fn id(n: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(n)
}

fn message(n: u128) -> MessageId {
    MessageId::from_uuid(id(n))
}

fn file(n: u128) -> FileId {
    FileId::from_uuid(id(n))
}

fn name(n: u128) -> String {
    format!("{n}.ris")
}

fn project() -> ProjectId {
    ProjectId::from_uuid(id(1))
}

fn manifest(files: &[u128]) -> Manifest {
    let files = files.iter().map(|n| ManifestFile { file_id: file(*n), name: name(*n), size_bytes: 10 });
    Manifest { name: "search".into(), files: files.collect(), repairs: None }
}

fn started(files: &[u128]) -> SearchEvent {
    SearchEvent::SearchUploadStarted(SearchUploadStarted { project_id: project(), manifest: manifest(files) })
}

fn withdrawn() -> SearchEvent {
    SearchEvent::SearchWithdrawn(SearchWithdrawn { project_id: project(), manifest: manifest(&[1, 2]) })
}

/// A stored file whose upload says how many files there are: none says nothing, 0 is invalid.
fn saved(n: u128, expected_files: Option<usize>) -> SearchEvent {
    let metadata =
        expected_files.map(|expected_files| UploadMetadata { search_name: "search".into(), expected_files });
    SearchEvent::SearchUploadSaved(SearchUploadSaved {
        project_id: project(),
        file_id: file(n),
        file_name: name(n),
        object: ObjectRef { bucket: "uploads".into(), key: name(n), version: None, size_bytes: 10 },
        metadata: metadata.map(|metadata| metadata.to_map()).unwrap_or_default(),
    })
}

fn read(n: u128) -> SearchEvent {
    let counts = Counts {
        format: "RIS".into(),
        encoding: "UTF-8".into(),
        records: 1,
        studies: 1,
        ..Counts::default()
    };
    SearchEvent::ReferenceFileParsingCompleted(ReferenceFileParsingCompleted { file_id: file(n), counts })
}

fn refused(n: u128) -> SearchEvent {
    SearchEvent::ReferenceFileFaulted(ReferenceFileFaulted {
        file_id: file(n),
        reason: "the file is empty".into(),
    })
}

fn never_parsed(n: u128) -> SearchEvent {
    SearchEvent::StartParsingFaulted(StartParsingFaulted {
        file_id: file(n),
        reason: "it was never read".into(),
    })
}

/// The timeout that message `n` has scheduled.
fn timeout(n: u128) -> SearchEvent {
    SearchEvent::UploadTimeout(UploadTimeout { timeout_id: timeout_id(n) })
}

fn parse_timeout(n: u128) -> SearchEvent {
    SearchEvent::ParseTimeout(ParseTimeout { timeout_id: timeout_id(n) })
}

/// Stands for the event of the timeout that message 1 has scheduled, which schedules another one.
const LOOKING: u128 = 0;

fn timeout_id(n: u128) -> TimeoutId {
    let first = TimeoutId::caused_by(&message(if n == LOOKING { 1 } else { n }));
    if n == LOOKING { TimeoutId::caused_by(&MessageId::from_uuid(first.as_uuid())) } else { first }
}

fn found(files: &[SearchEvent]) -> SearchEvent {
    let files = files.iter().filter_map(|event| match event {
        SearchEvent::SearchUploadSaved(saved) => Some(saved.clone()),
        _ => None,
    });
    SearchEvent::UploadsFound(UploadsFound { look_id: timeout_id(LOOKING), files: files.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saga::event::tokens_needed;

    #[test]
    fn an_event_announces_at_least_the_tokens_that_its_effects_need() {
        for (_, state) in situations() {
            for (_, _, event) in events() {
                if let Decision::Advance(advance) = happens(&state, &event) {
                    let answered =
                        |effect: &&Effect| matches!(effect, Effect::Ask { .. } | Effect::Schedule { .. });
                    let needed = advance.effects.iter().filter(answered).count();
                    assert!(needed <= tokens_needed(&event), "{} in {}", event.kind().name, state.name());
                }
            }
        }
    }

    #[test]
    fn a_search_that_waits_has_its_timer() {
        for (_, state) in situations() {
            for (_, _, event) in events() {
                let Decision::Advance(advance) = happens(&state, &event) else { continue };
                let schedules = |effect: &Effect| matches!(effect, Effect::Schedule { .. });
                let is_set = advance.effects.iter().any(schedules);
                let runs_on = state.timeout().is_some() && advance.next.timeout() == state.timeout();
                let what = format!("{} in {}", event.kind().name, state.name());
                assert!(advance.next.completed_at().is_some() || is_set || runs_on, "{what}");
            }
        }
    }

    #[test]
    fn a_repeated_event_is_ignored() {
        for (_, state) in situations() {
            for (_, _, event) in events() {
                if let Decision::Advance(advance) = happens(&state, &event) {
                    let again = happens(&advance.next, &event);
                    let name = event.kind().name;
                    assert!(matches!(again, Decision::Ignore { .. }), "{name} in {}", state.name());
                }
            }
        }
    }
}
