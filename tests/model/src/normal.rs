//! Normalization of states that differ only in irrelevant details.

use messages::{AttemptId, Token};
use saga::{Content, Saga};

use crate::keyed::{Family, Of, key};
use crate::system::{Phase, System};

impl<S: Saga> System<S> {
    /// Normalizes irrelevant differences: workers are interchangeable, and only the order of fences matters.
    pub(crate) fn normalise(&mut self) {
        let mut fences: Vec<u64> = self.fences().map(|fence| *fence).collect();
        fences.sort_unstable();
        fences.dedup();
        for fence in self.fences() {
            *fence = fences.iter().position(|known| known == fence).map_or(0, |rank| rank as u64);
        }
        self.workers.sort_by_cached_key(key);
    }

    /// Returns every fence that is still referenced.
    fn fences(&mut self) -> impl Iterator<Item = &mut u64> {
        let documents = self.document.iter_mut().chain(self.earlier.iter_mut().flatten());
        let stored = documents.map(|stored| &mut stored.fence);
        stored.chain([&mut self.ledger.fence]).chain(self.workers.iter_mut().filter_map(Phase::fence_mut))
    }

    /// Returns every attempt that is still referenced, so that its number is not reused.
    pub(crate) fn known_attempts(&self) -> Vec<AttemptId> {
        let mut tokens: Vec<&Token> = self.ledger.tokens.value.iter().collect();
        tokens.extend(
            self.queue.value.values().filter_map(|queued| queued.incoming.value.message.token.as_ref()),
        );
        let mut attempts: Vec<AttemptId> = self.pinned.value.iter().copied().collect();
        let mut contents: Vec<&Content<S::State>> = self.content().into_iter().collect();
        contents.extend(self.earlier.iter().flatten().map(|stored| &stored.document.value.content));
        for phase in &self.workers {
            attempts.extend(phase.attempt());
            contents.extend(phase.content());
        }
        for content in contents {
            attempts.push(content.attempt);
            tokens.extend(content.expected.iter().map(|expected| &expected.token));
            tokens.extend(content.processed.iter().filter_map(|processed| processed.token.as_ref()));
        }
        attempts.extend(self.ledger.holder.map(|(attempt, _)| attempt));
        attempts.extend(tokens.into_iter().filter_map(minted_by));
        attempts
    }
}

/// Returns the attempt that created a token.
pub(crate) fn minted_by(token: &Token) -> Option<AttemptId> {
    token.as_str().split(':').nth(2).filter(|_| token.is_from_attempt())?.parse().ok()
}

impl<F: Family> Phase<F> {
    fn fence_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Idle | Self::Again(..) | Self::Released(..) => None,
            Self::Loaded(_, stored, _) => stored.as_mut().map(|stored| &mut stored.fence),
            Self::Claimed(_, claimed)
            | Self::Decided(_, claimed, _)
            | Self::Granted(_, claimed, _)
            | Self::Conflicted(_, claimed)
            | Self::Refused(_, claimed)
            | Self::Short(_, claimed, _)
            | Self::Stored(_, claimed, _)
            | Self::Dispatched(_, claimed, _)
            | Self::Cleared(_, claimed, _) => Some(&mut claimed.fence),
        }
    }
}

impl<S: Saga> Phase<Of<S>> {
    fn content(&self) -> Option<&Content<S::State>> {
        match self {
            Self::Loaded(_, stored, _) => stored.as_ref().map(|stored| &stored.document.value.content),
            Self::Decided(_, _, plan) | Self::Granted(_, _, plan) => {
                plan.value.persist.as_ref().map(|persist| &persist.content)
            }
            _ => None,
        }
    }
}
