//! What must hold when everything has come to rest.

use contracts::{FileId, JobState, Outcome, SearchId};
use imports::Matcher;
use outbox::Queue;
use outbox::session::Found;
use saga::State;

use super::{Checks, EffectKind};
use crate::options::Invariant;
use crate::workload::{Quality, Truth};
use crate::world::{World, short};

/// The queues of which nothing may be left.
const EMPTY: [Queue; 9] = [
    Queue::Uploads,
    Queue::Saga,
    Queue::Parse,
    Queue::ParseDead,
    Queue::Control,
    Queue::UploadsDead,
    Queue::SagaDead,
    Queue::ControlDead,
    Queue::ParseUnreadable,
];

type AtRest = Result<(), (Invariant, String)>;

impl World {
    /// Checks everything that must hold at rest.
    pub(crate) fn check_rest(&mut self) {
        if let Err((invariant, detail)) = self.at_rest() {
            self.violate(invariant, || detail);
        }
    }

    fn at_rest(&self) -> AtRest {
        for queue in EMPTY {
            let left = self.left_in(queue);
            if left > 0 {
                return Err((Invariant::Quiescence, format!("{left} messages are left in {}", queue.name())));
            }
        }
        self.sessions_at_rest()?;
        self.effects_at_rest()?;
        for search in self.checks.truth.keys() {
            self.search_at_rest(*search)?;
        }
        Ok(())
    }

    fn search_at_rest(&self, search: SearchId) -> AtRest {
        let truth = self.checks.truth.get(&search);
        let uploaded = truth.is_some_and(|truth| truth.uploads > 0);
        let Some(stored) = self.documents.get(&search) else {
            if uploaded || self.committed(search) {
                let detail = format!("search {search} has begun, but nothing of it is stored");
                return Err((Invariant::Quiescence, detail));
            }
            return Ok(());
        };
        let document = &stored.document;
        let state = &document.content.state;
        if state.completed_at().is_none() {
            return Err((Invariant::Quiescence, format!("search {search} stays in {}", state.name())));
        }
        if !document.outbox.is_empty() {
            let count = document.outbox.len();
            return Err((Invariant::Quiescence, format!("search {search} keeps {count} outbox entries")));
        }
        self.outcome_at_rest(search, state)?;
        self.duplicates_at_rest(search)?;
        self.job_at_rest(search, state, document.version)?;
        self.tokens_at_rest(search)
    }

    /// The search ended as its files deserve.
    fn outcome_at_rest(&self, search: SearchId, state: &State) -> AtRest {
        let (State::Completed(ended) | State::Error(ended)) = state else { return Ok(()) };
        let Some(truth) = self.checks.truth.get(&search) else { return Ok(()) };
        let timed_out = ended.reason.as_deref().is_some_and(|reason| reason.starts_with("upload timed out"));
        if timed_out {
            return Ok(());
        }
        let withdrawn = ended.reason.as_deref().is_some_and(|reason| reason.starts_with("withdrawn"));
        if withdrawn {
            return self.withdrawn_at_rest(search, truth);
        }
        for (file, known) in &ended.import.files {
            let quality = truth.files.get(file).copied();
            let given_up = self.checks.given_up.contains(&(search, *file));
            let fits = match (&known.outcome, quality) {
                (Some(Outcome::Completed(_)), Some(Quality::Good)) => true,
                (Some(Outcome::Failed { .. }), Some(Quality::Bad | Quality::Unreadable)) => true,
                (Some(Outcome::Failed { .. }), Some(Quality::Good)) => given_up,
                _ => false,
            };
            if !fits {
                let detail = format!("file {file}, {quality:?}, of search {search} has {:?}", known.outcome);
                return Err((Invariant::EffectsTakeEffectOnce, detail));
            }
            self.parsed_at_rest(search, *file, known.outcome.as_ref())?;
        }
        Ok(())
    }

    /// A search that ended withdrawn was withdrawn by its client, and nothing of it was read.
    fn withdrawn_at_rest(&self, search: SearchId, truth: &Truth) -> AtRest {
        let parsed = self.checks.parsed.keys().any(|(of, _)| *of == search);
        if !truth.withdrawn || parsed {
            let detail =
                format!("search {search} ended withdrawn; asked for: {}, read: {parsed}", truth.withdrawn);
            return Err((Invariant::EffectsTakeEffectOnce, detail));
        }
        Ok(())
    }

    fn parsed_at_rest(&self, search: SearchId, file: FileId, outcome: Option<&Outcome>) -> AtRest {
        let Some(Outcome::Completed(counts)) = outcome else { return Ok(()) };
        if self.checks.parsed.get(&(search, file)).map_or(0, std::collections::BTreeSet::len) != 1 {
            let detail = format!("file {file} of search {search} was not parsed by exactly one command");
            return Err((Invariant::EffectsTakeEffectOnce, detail));
        }
        let studies = self.studies.get(&(search, file)).copied().unwrap_or(0);
        if studies as u64 != counts.studies {
            let detail = format!(
                "file {} of search {search} completed, but {studies} studies are stored",
                short(&file)
            );
            return Err((Invariant::StudiesAreKept, detail));
        }
        Ok(())
    }

    /// Whatever the order in which its files were read, a search has the marks that all of them together give.
    fn duplicates_at_rest(&self, search: SearchId) -> AtRest {
        // A command that was given up may have got no further than to what it marks by.
        if self.checks.given_up.iter().any(|(of, _)| *of == search) {
            return Ok(());
        }
        let mut matcher = Matcher::default();
        for file in self.recognised.files_of(search) {
            let studies = self.recognised.studies.get(&(search, file.file_id));
            for (record, study) in studies.into_iter().flatten() {
                let expected =
                    matcher.look(file.position, study).map(|(position, record, _)| (position, record));
                let found = self.recognised.marks.get(&(search, file.file_id, *record)).copied();
                if found != expected {
                    let detail = format!(
                        "record {record} of file {} of search {search} is marked as a duplicate of {found:?}, not of \
                         {expected:?}",
                        short(&file.file_id)
                    );
                    return Err((Invariant::StudiesAreKept, detail));
                }
            }
        }
        Ok(())
    }

    /// The reader sees the last state.
    fn job_at_rest(&self, search: SearchId, state: &State, version: u64) -> AtRest {
        let expected = state.job(search).map(|job| contracts::Job { revision: version, ..job });
        if self.jobs.get(&search) != expected.as_ref() {
            let shown = self.jobs.get(&search).map(|job| (job.revision, job.state));
            let detail = format!("job {search} shows {shown:?}, not version {version}, {}", state.name());
            return Err((Invariant::EffectsTakeEffectOnce, detail));
        }
        Ok(())
    }

    /// Of a search that has ended nobody waits for anything any more.
    fn tokens_at_rest(&self, search: SearchId) -> AtRest {
        let mut left = self.items.get(&search).into_iter().flat_map(|item| &item.tokens);
        // A copy whose worker crashed may have left what it minted; no message carries it.
        let usable =
            |token: &&contracts::Token| !token.is_from_attempt() || self.checks.was_given_out(search, token);
        // So may a withdrawal that came to nothing: its client saw the search under way, and was gone once it had
        // its token.
        let withdrawals = self.checks.truth.get(&search).map_or(0, |truth| usize::from(truth.withdrawn));
        match left.by_ref().filter(usable).nth(withdrawals) {
            Some(token) => Err((
                Invariant::Bounded,
                format!("search {search} has ended, but token {token} is still there"),
            )),
            None => Ok(()),
        }
    }

    fn committed(&self, search: SearchId) -> bool {
        let committed = |id| self.sessions.get(id).is_some_and(|stored| stored.found == Found::Committed);
        self.checks.sessions.iter().any(|(id, of)| *of == search && committed(id))
    }

    fn sessions_at_rest(&self) -> AtRest {
        for (id, search) in &self.checks.sessions {
            let Some(stored) = self.sessions.get(id) else {
                return Err((Invariant::Quiescence, format!("session {id} was never settled")));
            };
            if !stored.outbox.is_empty() {
                return Err((Invariant::Quiescence, format!("session {id} keeps its messages")));
            }
            if stored.found == Found::Committed && !self.jobs.contains_key(search) {
                return Err((Invariant::SessionIsAtomic, format!("session {id} lost its data")));
            }
        }
        for (search, truth) in &self.checks.truth {
            if truth.announced && !self.committed(*search) {
                let detail = format!("search {search} was announced, but its session is not stored");
                return Err((Invariant::SessionIsAtomic, detail));
            }
            let orphan = self.jobs.contains_key(search) && !self.documents.contains_key(search);
            if orphan && !self.committed(*search) {
                return Err((Invariant::SessionIsAtomic, format!("job {search} exists without its session")));
            }
        }
        Ok(())
    }

    fn effects_at_rest(&self) -> AtRest {
        for ((search, id), effect) in &self.checks.effects {
            if effect.performed == 0 && !effect.cancelled {
                let detail = format!("effect {id} of search {search} was stored and never performed");
                return Err((Invariant::EffectsTakeEffectOnce, detail));
            }
        }
        for (search, job) in self.jobs.iter().filter(|(_, job)| job.state.has_ended()) {
            let ended = |((of, _), effect): &(&(SearchId, _), &super::Effect)| {
                of == search && effect.kind == EffectKind::Ended
            };
            let count = self.checks.effects.iter().filter(ended).count();
            if count != 1 {
                let detail = format!("search {search}, {}, told of its end {count} times", job.state);
                return Err((Invariant::EffectsTakeEffectOnce, detail));
            }
        }
        Ok(())
    }

    /// Adds what came of the searches to the totals.
    pub(crate) fn count_searches(&mut self) {
        for stored in self.documents.values() {
            self.stats.searches += 1;
            match stored.document.content.state.job(stored.document.search_id).map(|job| job.state) {
                Some(JobState::Completed) => self.stats.completed += 1,
                Some(JobState::Error) => self.stats.failed += 1,
                _ => {}
            }
        }
    }
}

impl Checks {
    /// Whether any stored document ever waited for this token.
    fn was_given_out(&self, search: SearchId, token: &contracts::Token) -> bool {
        let contents = self.history.get(&search).into_iter().flatten();
        contents.flat_map(|(_, content)| &content.expected).any(|expected| expected.token == *token)
    }
}
