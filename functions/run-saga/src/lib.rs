//! The function behind the saga queue: one batch of deliveries, decoded one by one, grouped by search.
//!
//! Messages of one search are worked on together and in order, different searches at the same time. A bad
//! delivery costs only itself. What happens to one group is the `worker` crate's business.

use contracts::store::chain;
use contracts::{Delivery, Disposition, Message, Reporter, SearchId, Verdict};
use futures::stream::{self, StreamExt};
use saga::Event;
use worker::{Incoming, Judgement, Worker};

/// The function's name, in logs and in the messages it sends.
pub const FUNCTION: &str = "run-saga";

/// The function's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most searches that one batch works on at the same time, at least 1.
    pub concurrency: usize,
    /// Whether messages from outside without a token are admitted, such as that of a file which somebody dropped
    /// into the bucket. Then only states, not tokens, tell their duplicates. Optimistic mode needs it.
    pub admit_untokened: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { concurrency: 10, admit_untokened: false }
    }
}

/// The function.
#[derive(Clone)]
pub struct RunSaga {
    /// Works on one group.
    pub worker: Worker,
    /// Time, and who wants to know.
    pub reporter: Reporter,
    /// Its settings.
    pub settings: Settings,
}

/// A message of a group, and its place in the batch.
struct Member {
    index: usize,
    incoming: Incoming,
}

impl RunSaga {
    /// Works on a batch; one answer for each delivery, in order.
    pub async fn handle(&self, batch: &[Delivery]) -> Vec<Disposition> {
        let mut answers: Vec<Option<Disposition>> = vec![None; batch.len()];
        let mut groups: Vec<(SearchId, Vec<Member>)> = Vec::new();
        for (index, delivery) in batch.iter().enumerate() {
            match self.read(&delivery.body) {
                Ok(incoming) => join_group(&mut groups, Member { index, incoming }),
                Err(reason) => {
                    answers[index] = Some(self.reporter.reject(None, reason));
                }
            }
        }
        let work = groups.into_iter().map(|(search_id, members)| self.work_on(search_id, members));
        let done: Vec<_> =
            stream::iter(work).buffer_unordered(self.settings.concurrency.max(1)).collect().await;
        for (index, disposition) in done.into_iter().flatten() {
            answers[index] = Some(disposition);
        }
        // Every delivery is either unreadable or in a group, so every place is filled.
        answers.into_iter().flatten().collect()
    }

    fn read(&self, body: &str) -> Result<Incoming, String> {
        let message = Message::decode(body).map_err(|error| chain(&error))?;
        if message.token.is_none() && !self.settings.admit_untokened {
            return Err("it carries no token, and such messages are refused".to_owned());
        }
        let event = Event::from_message(&message)
            .ok_or_else(|| format!("{} is not an event of a search", message.body.name()))?;
        Ok(Incoming { message, event })
    }

    async fn work_on(&self, search_id: SearchId, members: Vec<Member>) -> Vec<(usize, Disposition)> {
        let (indices, group): (Vec<usize>, Vec<Incoming>) =
            members.into_iter().map(|member| (member.index, member.incoming)).unzip();
        let answers: Vec<Disposition> = match self.worker.work_on(search_id, &group).await {
            Ok(judgements) => group
                .iter()
                .zip(judgements)
                .map(|(incoming, judgement)| self.answer(&incoming.message, judgement))
                .collect(),
            Err(later) => group
                .iter()
                .map(|incoming| self.reporter.retry(&incoming.message, later.after, later.reason.clone()))
                .collect(),
        };
        indices.into_iter().zip(answers).collect()
    }

    fn answer(&self, message: &Message, judgement: Judgement) -> Disposition {
        if judgement.verdict == Verdict::Rejected {
            return self.reporter.reject(Some(message), judgement.why);
        }
        self.reporter.note(Some(message), judgement.verdict, &judgement.why);
        Disposition::Acknowledge
    }
}

fn join_group(groups: &mut Vec<(SearchId, Vec<Member>)>, member: Member) {
    let search_id = member.incoming.message.correlation_id;
    match groups.iter_mut().find(|(id, _)| *id == search_id) {
        Some((_, members)) => members.push(member),
        None => groups.push((search_id, vec![member])),
    }
}
