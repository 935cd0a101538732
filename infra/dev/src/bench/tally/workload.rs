//! The events of the workload and their order.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::EVENTS;

/// The number of sagas in progress. It exceeds the number of clients, so that events of a saga are rarely concurrent.
const GROUP: usize = 100;

/// The parameters of the workload.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// The number of sagas.
    pub sagas: usize,
    /// The percentage of events that are sent twice.
    pub duplicates: u32,
    /// The percentage of events that are swapped with the next one of their saga.
    pub reordered: u32,
    /// The seed of the random choices.
    pub seed: u64,
}

/// One event: the number of its saga, and its own number.
pub type SentEvent = (usize, u8);

impl Workload {
    /// Returns all events and copies. Sagas alternate in groups of 100.
    pub fn messages(&self) -> Vec<SentEvent> {
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
