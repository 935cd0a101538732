//! The search import in the simulator: the six functions as shipped, clients that announce searches and upload files, and
//! what is really in those files.
//!
//! - [`Searches`]: the workload;
//! - `client`: what a client does;
//! - `outside`: what outlives the workers besides what the engine stores: objects, studies, and the truth;
//! - `ports`: the application's own ports;
//! - `changes`, `rest`: what must hold of each change, and of everything at rest.

mod changes;
mod client;
mod outside;
mod ports;
mod rest;

use std::sync::Arc;
use std::time::Duration;

use functions::parse_references;
use futures::future::BoxFuture;
use imports::queues::PARSE;
use imports::saga::State;
use imports::{Deadlines, Library, ParseCommand, Ports, SearchEvent, SearchImport, Settings};
use jiff::SignedDuration;
use messages::{Message, Observation, PartitionKey, Queue, Verdict};
use outbox::SessionRecord;
use saga::{Engine, System};
use simulation::access::short;
use simulation::{
    Access, Bounds, Call, Change, Checked, Invariant, Mode, Rest, Rng, Scene, Violation, Workload,
};

use self::outside::Outside;

/// What the keys of uploads begin with.
const KEY_PREFIX: &str = "uploads/";

/// Defect: a search waits for ever for what comes of its files.
const NO_PARSE_DEADLINE: &str = "no parse deadline";
/// Defect: a search that has waited long enough ends without asking the store.
const NO_LOOK: &str = "no look before the timeout";

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
        let mut deadlines = Deadlines::default();
        if access.has(NO_PARSE_DEADLINE) {
            deadlines.parse = SignedDuration::MAX;
        }
        let own = Arc::new(ports::Own(access));
        Ports {
            engine,
            library: Ok(Library::of(&own)),
            objects: own.clone(),
            bucket: Ok(own.clone()),
            uploads: Ok(own),
            settings: Settings {
                key_prefix: KEY_PREFIX.to_owned(),
                deadlines,
                batch: 2,
                push_bytes: 1,
                ..Settings::default()
            },
        }
    }

    fn client(&self, ports: Ports, access: Access<Outside>, rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(client::run(ports, access, rng))
    }

    fn calls(&self) -> &'static [Call] {
        &ports::CALLS
    }

    fn unused(&self) -> &'static [Call] {
        &[Call::RECORDS_READ]
    }

    fn defects(&self) -> &'static [(&'static str, &'static [Mode])] {
        &[
            (NO_PARSE_DEADLINE, &Mode::ALL),
            (NO_LOOK, &Mode::ALL),
            (ports::PLACE_WITHOUT_STUDIES, &Mode::ALL),
            (ports::READER_VERSION_IGNORED, &Mode::ALL),
        ]
    }

    fn patience(&self) -> Option<Duration> {
        Some(Deadlines::default().parse.unsigned_abs())
    }

    fn bounds(&self, outside: &Outside, partition: PartitionKey) -> Bounds {
        let Some(truth) = outside.truth.get(&partition) else { return Bounds::NONE };
        let files = truth.files.len();
        // Started; the upload and the outcome of each file; two timeouts and an answer for each time that it waits, which
        // is once for each file and once before them; the withdrawal.
        let messages = 1 + 2 * files + 3 * (1 + files) + usize::from(truth.withdrawn);
        // The timeout, the look for uploads of each time that it waits, and the commands.
        let awaited = 1 + (1 + files) + files;
        // A view for each message, the commands, the timeout and the end.
        // The announcement, the uploads and the withdrawal, however often each is asked for.
        Bounds { messages, awaited, outbox: messages + awaited + 1, granted: files + 2 }
    }

    fn succeeded(&self, state: &State) -> bool {
        matches!(state, State::Completed(_))
    }

    fn changed(&self, change: &Change<'_, SearchImport>) -> Checked {
        changes::check(change).map_err(|detail| Violation {
            invariant: Invariant::EffectsWithTheirChange,
            detail: format!("search {}: {detail}", change.write.partition),
        })
    }

    fn committed(&self, session: &SessionRecord) -> Checked {
        let fits = session.entries.iter().all(|entry| {
            let message = Message::decode(&entry.payload).ok();
            let event = message.as_ref().and_then(|message| message.read::<SearchEvent>().ok());
            match (event, session.views.as_slice()) {
                (Some(SearchEvent::SearchUploadStarted(_)), [view]) => {
                    message.is_some_and(|message| message.partition == view.partition)
                }
                (Some(SearchEvent::SearchWithdrawn(_)), []) => true,
                _ => false,
            }
        });
        let detail = || format!("session {} was committed without its data", session.id);
        if fits { Ok(()) } else { Err(Violation { invariant: Invariant::SessionIsAtomic, detail: detail() }) }
    }

    /// A file is parsed by one command, however often.
    fn observed(&self, scene: &mut Scene<'_, Outside>, observation: &Observation) -> Checked {
        if observation.function != parse_references::NAME || observation.verdict != Verdict::Handled {
            return Ok(());
        }
        let (Some(search), Some(id)) = (observation.partition, observation.message_id) else { return Ok(()) };
        let command = scene.effect(search, id).and_then(|message| message.read::<ParseCommand>().ok());
        let Some(ParseCommand::StartParsing(command)) = command else { return Ok(()) };
        let parsed = scene.parsed.entry((search, command.file_id)).or_default();
        parsed.insert(id);
        let count = parsed.len();
        if count > 1 {
            let detail =
                format!("file {} of search {search} was parsed by {count} commands", short(&command.file_id));
            return Err(Violation { invariant: Invariant::EffectsTakeEffectOnce, detail });
        }
        Ok(())
    }

    fn given_up(&self, scene: &mut Scene<'_, Outside>, queue: &Queue, message: &Message) {
        if *queue != PARSE {
            return;
        }
        match message.read() {
            Ok(ParseCommand::StartParsing(command)) => {
                scene.given_up.insert((message.partition, command.file_id));
            }
            Ok(ParseCommand::LookForUploads(_)) => {
                scene.looks_given_up.insert(message.partition);
            }
            Err(_) => {}
        }
    }

    fn check(&self, rest: &Rest<'_, Self>) -> Checked {
        rest::check(rest)
    }

    /// What is parsed counts only for files that were not given up: of those nobody sees any studies, and a late copy of
    /// the command may well succeed.
    fn unchanged(&self, before: &Outside, after: &Outside) -> Result<(), String> {
        if before.commands() != after.commands() {
            return Err("what was parsed".to_owned());
        }
        if before.counts() != after.counts() {
            return Err("the studies".to_owned());
        }
        Ok(())
    }
}
