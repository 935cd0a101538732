//! The planted defects of messages between sagas.

use messages::{Host, Message, MessageId, Outgoing, PartitionKey, Token};

use crate::coverage::Call;
use crate::options::Mutant;
use crate::port::Port;
use crate::world::World;

impl Port {
    /// Takes note of a grant of a saga that is made after sending, if that is the defect.
    pub(crate) fn grants_later(&self, partition: PartitionKey, tokens: &[Token]) -> bool {
        let process = self.process;
        self.perform(|world| {
            let is_late = world.has(Mutant::TokenAfterSending) && world.runs_saga.get(process) == Some(&true);
            if is_late {
                world.mutants.late_grants.entry(process).or_default().push((partition, tokens.to_vec()));
            }
            is_late
        })
    }

    /// Makes the grants that were put off.
    pub(crate) async fn grant_late(&self) {
        let process = self.process;
        let grants = self.perform(|world| world.mutants.late_grants.remove(&process));
        for (partition, tokens) in grants.unwrap_or_default() {
            let now = self.now();
            // A failure leaves the event without its token, which is the defect too.
            let _ = self.call(Call::LEDGER_GRANT, move |world| world.grant(partition, &tokens, now)).await;
        }
    }

    /// Returns the messages that are actually sent, after the planted defects of messages between sagas were applied.
    pub(crate) fn between_sagas(&self, messages: &[Outgoing]) -> Vec<Outgoing> {
        let now = self.now();
        self.perform(|world| {
            messages.iter().map(|message| world.between_sagas(message, now)).collect::<Vec<_>>()
        })
    }
}

impl World {
    fn between_sagas(&mut self, outgoing: &Outgoing, now: jiff::Timestamp) -> Outgoing {
        if !self.checks.is_between_partitions(outgoing.id) {
            return outgoing.clone();
        }
        let Ok(message) = Message::decode(&outgoing.body) else { return outgoing.clone() };
        let is_reply = message.token.as_ref().is_some_and(Token::is_from_attempt);
        if self.has(Mutant::TokenGrantedAgain) && !is_reply {
            self.grant(message.partition, message.token.as_slice(), now);
        }
        let changed = if self.has(Mutant::ReplyWithoutToken) && is_reply {
            Message { token: None, ..message }
        } else if self.has(Mutant::ChildStartedAgain) && !is_reply {
            let (id, unique) = (MessageId::from_uuid(self.fresh_id()), self.fresh_id());
            let token = message.token.map(|_| Token::minted_at_entry(message.partition, unique));
            self.grant(message.partition, token.as_slice(), now);
            Message { id, token, ..message }
        } else {
            return outgoing.clone();
        };
        let body = changed.encode().unwrap_or_default();
        Outgoing { id: changed.id, body, ..outgoing.clone() }
    }
}
