//! The search import in the simulator: the six functions as shipped, clients that announce searches and upload files,
//! and the true content of these files.
//!
//! - [`Searches`]: the workload;
//! - `client`: the clients;
//! - `mutants`: defects between the functions and the engine's ports;
//! - `outside`: the state outside the engine's stores that outlives the workers: objects, studies, and the true
//!   history;
//! - `ports`: the application's own ports;
//! - `situations`: names of defects and situations;
//! - `recovery`: the operator's commands after a restore;
//! - `changes`, `final_state`, `restored`: the invariants of each change, of the final state, and of that after a
//!   restore.

mod changes;
mod client;
mod final_state;
mod mutants;
mod outside;
mod ports;
mod recovery;
mod restored;
mod situations;

use std::sync::Arc;
use std::time::Duration;

use functions::parse_references;
use futures::future::BoxFuture;
use imports::queues::PARSE;
use imports::saga::State;
use imports::{Deadlines, FileRef, ParseCommand, Ports, SearchEvent, SearchImport, Settings, StudyStores};
use jiff::SignedDuration;
use messages::{DecisionRecord, Message, PartitionKey, Queue, Verdict};
use outbox::SessionRecord;
use saga::{Control, Engine, System};
use simulation::access::short;
use simulation::{
    Access, Bounds, Call, Change, CheckResult, Invariant, Mode, Mutant, Rest, RestoredStores, Rng, Scene,
    Violation, Workload,
};

use self::outside::Outside;
use self::situations::{
    BY_HAND_COMPLETES, BY_HAND_ENDS, BY_HAND_REFUSED, CANCELLED, DECIDED, DELETED, EXPORTED,
    EXPORTED_TOGETHER, HALF_UNREADABLE, KEY_PREFIX, KEY_REPEATED, KEY_SHARED, LATE_MARK, MANY_BATCHES,
    NO_METADATA, NO_PARSE_DEADLINE, NO_SCAN, OVERTAKEN, READ_ON, REPAIRED, REPORTED, RESTARTED,
    STREAM_BREAKS,
};

/// The search import.
#[derive(Debug, Clone, Copy, Default)]
pub struct Searches;

impl Workload for Searches {
    type Saga = SearchImport;
    type Ports = Ports;
    type World = Outside;

    fn saga(&self) -> SearchImport {
        SearchImport::default()
    }

    fn system(&self) -> &'static System<Ports> {
        &functions::SYSTEM
    }

    fn ports(&self, engine: Engine, access: Access<Outside>) -> Ports {
        let mut engine = mutants::plant(engine, &access);
        let without_ledger = engine.runner.admit_untokened;
        engine.runner.admit_untokened = access.with(|scene| {
            let drawn = without_ledger || scene.rng().one_in(2);
            *scene.admits_untokened.get_or_insert(drawn)
        });
        let mut deadlines = Deadlines::default();
        if access.has(NO_PARSE_DEADLINE) {
            deadlines.parse = SignedDuration::MAX;
        }
        let own = Arc::new(ports::Own(access));
        Ports {
            engine,
            study_stores: Ok(StudyStores::of(&own)),
            objects: Ok(own.clone()),
            bucket: Ok(own.clone()),
            uploads: Ok(own.clone()),
            exports: Ok(own),
            machine: None,
            settings: Settings {
                key_prefix: KEY_PREFIX.to_owned(),
                deadlines,
                push_bytes: 1,
                ..Settings::default()
            },
        }
    }

    fn client(&self, ports: Ports, access: Access<Outside>, rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(client::run(ports, access, rng))
    }

    fn clients_return(&self) -> bool {
        true
    }

    fn calls(&self) -> &'static [Call] {
        &ports::CALLS
    }

    fn situations(&self) -> &'static [&'static str] {
        &[
            CANCELLED,
            LATE_MARK,
            OVERTAKEN,
            RESTARTED,
            STREAM_BREAKS,
            MANY_BATCHES,
            READ_ON,
            HALF_UNREADABLE,
            KEY_REPEATED,
            KEY_SHARED,
            BY_HAND_COMPLETES,
            BY_HAND_ENDS,
            BY_HAND_REFUSED,
            EXPORTED,
            EXPORTED_TOGETHER,
            REPAIRED,
            DELETED,
            DECIDED,
            REPORTED,
        ]
    }

    fn races(&self) -> &'static [Call] {
        &ports::RACES
    }

    fn defects(&self) -> &'static [(&'static str, &'static [Mode])] {
        &[
            (NO_PARSE_DEADLINE, &Mode::ALL),
            (NO_SCAN, &Mode::ALL),
            (ports::PLACE_WITHOUT_STUDIES, &Mode::ALL),
            (ports::READER_VERSION_IGNORED, &Mode::ALL),
            (ports::NO_FENCES, &Mode::ALL),
            (ports::LAST_MARK_WINS, &Mode::ALL),
            (ports::UNMADE_KEYS_ARE_NONE, &Mode::ALL),
            (ports::FAILURES_ARE_CRASHES, &Mode::ALL),
            (ports::WITHDRAWN_IS_CLEARED, &Mode::ALL),
            (ports::DELETED_EARLY, &Mode::ALL),
            (ports::EXPORT_OUTLIVES_SEARCH, &Mode::ALL),
            (ports::SHARED_EXPORT_IS_KEPT, &Mode::ALL),
            (ports::FILES_OF_SECONDARY, &Mode::ALL),
            (mutants::DEADLINE_NOT_RENEWED, &Mode::ALL),
            (mutants::NEW_TOKENS_ON_REPEAT, &[Mode::Ledger]),
            (mutants::BOTH_WIN, &Mode::ALL),
            (mutants::KEY_BURNED, &Mode::ALL),
            (mutants::EARLIER_DOCUMENT_BELIEVED, &Mode::ALL),
            (mutants::NEWER_DOCUMENT_AWAITED, &Mode::ALL),
            (mutants::DECISION_ALONE, &Mode::ALL),
            (mutants::UNRECORDED_DELETION, &Mode::ALL),
            (recovery::UNSETTLED, &Mode::ALL),
            (recovery::REPLIES_ADMITTED, &Mode::ALL),
            (recovery::UNCOMPARED, &[Mode::Ledger]),
            (recovery::UNLISTED, &[Mode::Ledger]),
            (mutants::SCAN_NOT_REPEATED, &Mode::ALL),
            (mutants::RESENT_AT_EACH_REDELIVERY, &Mode::ALL),
            (mutants::UNRECORDED_REPAIR, &[Mode::Ledger]),
        ]
    }

    /// A parser executes a command only if the stored search requires it, so it detects a repeated command even if the
    /// token of the reply is not checked.
    fn hidden_defects(&self) -> &'static [Mutant] {
        &[Mutant::ReplyTokenUnchecked]
    }

    fn restores(&self) -> bool {
        true
    }

    fn restore(&self, outside: &mut Outside, backup: &Outside) {
        outside.restore(backup);
    }

    fn after_restore(
        &self,
        ports: Ports,
        access: Access<Outside>,
        what: RestoredStores,
    ) -> BoxFuture<'static, bool> {
        Box::pin(recovery::after_restore(ports, access, what))
    }

    fn check_stored(&self, ports: Ports, access: Access<Outside>) -> BoxFuture<'static, bool> {
        Box::pin(recovery::check_stored(ports, access))
    }

    fn patience(&self) -> Option<Duration> {
        Some(Deadlines::default().parse.unsigned_abs())
    }

    fn bounds(&self, outside: &Outside, partition: PartitionKey) -> Bounds {
        let Some(truth) = outside.truth.get(&partition) else { return Bounds::NONE };
        let files = truth.most_files();
        // Once for each file and once before them; if the announcement is awaited, once after it.
        let waits = 1 + files + usize::from(!truth.by_hand.is_empty());
        // The start, the upload and the outcome of each file, two timeouts and a reply for each wait, and the
        // withdrawal.
        let messages = 1 + 2 * files + 3 * waits + usize::from(truth.withdrawn);
        // The timeout, the bucket scan of each wait, and the commands.
        let awaited = 1 + waits + files;
        // A view for each message, the commands, the timeout and the end, and deletions. The announcement, the uploads
        // and the withdrawal, for each repeated request.
        Bounds { messages, awaited, outbox: messages + awaited + 2 + files, granted: files + 2 }
    }

    fn succeeded(&self, state: &State) -> bool {
        matches!(state, State::Completed(_))
    }

    fn controls(&self) -> &'static [Control] {
        &[Control::Pause]
    }

    /// A file without a token was not requested.
    fn refuses(&self, outside: &Outside, message: &Message) -> bool {
        let is_saved = matches!(message.read(), Ok(SearchEvent::SearchUploadSaved(_)));
        message.token.is_none() && is_saved && outside.admits_untokened == Some(false)
    }

    fn relies_on_documents(&self, outside: &Outside) -> bool {
        let has_untokened = || outside.truth.values().any(|truth| !truth.by_hand.is_empty());
        outside.admits_untokened == Some(true) && has_untokened()
    }

    fn changed(&self, change: &Change<'_, SearchImport>) -> CheckResult {
        changes::check(change).map_err(|detail| Violation {
            invariant: Invariant::EffectsWithTheirChange,
            detail: format!("search {}: {detail}", change.write.partition),
        })
    }

    fn committed(&self, session: &SessionRecord) -> CheckResult {
        let fits = session.entries.iter().all(|entry| {
            let message = Message::decode(&entry.payload).ok();
            let event = message.as_ref().and_then(|message| message.read::<SearchEvent>().ok());
            match (event, session.views.as_slice()) {
                // A repair also names the files that are already stored.
                (Some(SearchEvent::SearchUploadStarted(_) | SearchEvent::SearchUploadSaved(_)), [view]) => {
                    message.is_some_and(|message| message.partition == view.partition)
                }
                (Some(SearchEvent::SearchWithdrawn(_)), []) => true,
                (None, []) => is_command(message.as_ref()),
                _ => false,
            }
        });
        let detail = || format!("session {} was committed without its data", session.id);
        if fits { Ok(()) } else { Err(Violation { invariant: Invariant::SessionIsAtomic, detail: detail() }) }
    }

    /// One command parses a file, possibly several times.
    fn observed(&self, scene: &mut Scene<'_, Outside>, observation: &DecisionRecord) -> CheckResult {
        meet_ends(scene, observation);
        if observation.function != parse_references::NAME || observation.verdict != Verdict::Handled {
            return Ok(());
        }
        let (Some(search), Some(id)) = (observation.partition, observation.message_id) else { return Ok(()) };
        let command = scene.effect(search, id).and_then(|message| message.read::<ParseCommand>().ok());
        let Some(ParseCommand::StartParsing(command)) = command else { return Ok(()) };
        let parsed = scene.parsed.entry(FileRef::new(search, command.file_id)).or_default();
        parsed.insert(id);
        let count = parsed.len();
        // After a restore, another command may read a file that an undone command had read.
        if count > 1 && !scene.restored().is_some_and(RestoredStores::has_database) {
            let detail =
                format!("file {} of search {search} was parsed by {count} commands", short(&command.file_id));
            return Err(Violation { invariant: Invariant::EffectsTakeEffectOnce, detail });
        }
        Ok(())
    }

    fn dead_lettered(
        &self,
        scene: &mut Scene<'_, Outside>,
        queue: &Queue,
        message: &Message,
        is_outlasted: bool,
    ) {
        if *queue != PARSE {
            return;
        }
        match message.read() {
            Ok(ParseCommand::StartParsing(command)) => {
                let file = FileRef::new(message.partition, command.file_id);
                scene.given_up.insert(file);
                if is_outlasted {
                    scene.outlasted.insert(file);
                }
            }
            Ok(ParseCommand::LookForUploads(_)) if is_outlasted => {
                scene.looks_outlasted.insert(message.partition);
            }
            Ok(ParseCommand::TakeBackFiles(command)) => {
                for file in command.files {
                    scene.given_up.insert(FileRef::new(message.partition, file));
                    // A late duplicate may be dead-lettered after the command took effect.
                    if !scene.is_removed(message.partition, file) {
                        scene.left.insert(FileRef::new(message.partition, file));
                    }
                }
            }
            Ok(ParseCommand::MakeExport(command)) if is_outlasted => {
                scene.unmade.insert(command.export_id);
            }
            Ok(
                ParseCommand::LookForUploads(_)
                | ParseCommand::CompareStudies(_)
                | ParseCommand::MakeExport(_),
            )
            | Err(_) => {}
        }
    }

    fn check(&self, rest: &Rest<'_, Self>) -> CheckResult {
        match rest.restored().is_some_and(RestoredStores::has_database) {
            true => restored::check(rest),
            false => final_state::check(rest),
        }
    }

    /// Compares the outside world before and after repeated actions. Abandoned files are omitted, because their studies
    /// are hidden, and a late duplicate of their command may succeed.
    fn unchanged(&self, before: &Outside, after: &Outside) -> Result<(), String> {
        if before.commands() != after.commands() {
            return Err("what was parsed".to_owned());
        }
        if before.made_exports(client::project()) != after.made_exports(client::project()) {
            return Err("the exports".to_owned());
        }
        if before.counts() != after.counts() {
            return Err("the studies".to_owned());
        }
        Ok(())
    }
}

/// Returns `true` if a client may send this command to the parser directly.
fn is_command(message: Option<&Message>) -> bool {
    match message.and_then(|message| message.read().ok()) {
        Some(ParseCommand::TakeBackFiles(command)) => command.forget,
        Some(ParseCommand::MakeExport(_) | ParseCommand::CompareStudies(_)) => true,
        _ => false,
    }
}

/// Records the progress of searches whose files were put into the bucket by hand.
fn meet_ends(scene: &mut Scene<'_, Outside>, observation: &DecisionRecord) {
    let DecisionRecord { partition: Some(search), verdict: Verdict::Handled, why, .. } = observation else {
        return;
    };
    let is_by_hand = |truth: &outside::Truth| truth.files.keys().all(|file| truth.by_hand.contains(file));
    if !scene.truth.get(search).is_some_and(is_by_hand) {
        return;
    }
    if why.contains("import completed") {
        scene.meet(BY_HAND_COMPLETES);
    } else if why.contains("the search was never announced") {
        scene.meet(BY_HAND_ENDS);
    } else if why.contains(NO_METADATA) {
        scene.meet(BY_HAND_REFUSED);
    }
}
