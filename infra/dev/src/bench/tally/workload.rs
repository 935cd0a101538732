//! The events of the workload and their order.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::EVENTS;

/// The number of sagas in progress. It exceeds the number of clients, so that events of a saga are rarely concurrent.
const GROUP: usize = 100;

/// The parameters of the workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workload {
    /// The number of sagas.
    pub(super) sagas: usize,
    /// The percentage of events that are sent twice.
    pub(super) duplicates: u32,
    /// The percentage of events that are swapped with the next one of their saga.
    pub(super) reordered: u32,
    /// The seed of the random choices.
    pub(super) seed: u64,
}

/// One event: the number of its saga, and its own number.
pub(super) type SentEvent = (usize, u8);

impl Workload {
    /// Returns all events and copies. Sagas alternate in groups of 100.
    pub(super) fn messages(&self) -> Vec<SentEvent> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let sagas: Vec<usize> = (0..self.sagas).collect();
        let mut messages = Vec::new();
        for together in sagas.chunks(GROUP) {
            let lines: Vec<(usize, Vec<u8>)> =
                together.iter().map(|saga| (*saga, self.line(&mut random))).collect();
            let longest = lines.iter().map(|(_, line)| line.len()).max().unwrap_or(0);
            for turn in 0..longest {
                messages.extend(lines.iter().filter_map(|(saga, line)| Some((*saga, *line.get(turn)?))));
            }
        }
        messages
    }

    /// Returns the events of one saga.
    fn line(&self, random: &mut StdRng) -> Vec<u8> {
        let mut events: Vec<u8> = (0..EVENTS).collect();
        for place in 1..events.len() {
            if random.random_ratio(self.reordered.min(100), 100) {
                events.swap(place - 1, place);
            }
        }
        let mut line = Vec::new();
        for event in events {
            let copies = 1 + usize::from(random.random_ratio(self.duplicates.min(100), 100));
            line.extend(std::iter::repeat_n(event, copies));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const WORKLOAD: Workload = Workload { sagas: 2_000, duplicates: 30, reordered: 5, seed: 1 };

    fn lines(workload: Workload) -> BTreeMap<usize, Vec<u8>> {
        let mut lines: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (saga, event) in workload.messages() {
            lines.entry(saga).or_default().push(event);
        }
        lines
    }

    #[test]
    fn three_in_ten_events_are_sent_twice() {
        let lines = lines(WORKLOAD);
        assert_eq!(lines.len(), 2_000);
        for line in lines.values() {
            for event in 0..EVENTS {
                let sent = line.iter().filter(|sent| **sent == event).count();
                assert!((1..=2).contains(&sent), "{line:?}");
            }
        }
        let sent: usize = lines.values().map(Vec::len).sum();
        assert!((12_700..=13_300).contains(&sent), "{sent}");
    }

    #[test]
    fn one_event_in_twenty_is_swapped() {
        let overtaken: usize = lines(WORKLOAD)
            .values()
            .map(|line| line.windows(2).filter(|pair| pair[0] > pair[1]).count())
            .sum();
        assert!((300..=500).contains(&overtaken), "{overtaken} of 8,000 pairs");
    }

    #[test]
    fn seed_determines_order_and_sagas_alternate() {
        assert_eq!(WORKLOAD.messages(), WORKLOAD.messages());
        assert_ne!(WORKLOAD.messages(), Workload { seed: 2, ..WORKLOAD }.messages());
        let apart = WORKLOAD.messages().windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
        assert!(apart < 100, "{apart} times one saga follows itself");
    }
}
