//! The workload for comparing engines: its events, their order, and the errors that a final state shows.

use std::collections::BTreeMap;

use dev::bench::tally::EVENTS;
use dev::bench::tally::clients::TallyErrors;
use dev::bench::tally::workload::Workload;

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
    let overtaken: usize =
        lines(WORKLOAD).values().map(|line| line.windows(2).filter(|pair| pair[0] > pair[1]).count()).sum();
    assert!((300..=500).contains(&overtaken), "{overtaken} of 8,000 pairs");
}

#[test]
fn seed_determines_order_and_sagas_alternate() {
    assert_eq!(WORKLOAD.messages(), WORKLOAD.messages());
    assert_ne!(WORKLOAD.messages(), Workload { seed: 2, ..WORKLOAD }.messages());
    let apart = WORKLOAD.messages().windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
    assert!(apart < 100, "{apart} times one saga follows itself");
}

#[test]
fn state_shows_lost_and_repeated_events() {
    let found = |events: &[u8]| {
        let found = TallyErrors::among(events);
        (found.lost, found.doubled)
    };
    assert_eq!(found(&[1, 0, 2, 4, 3]), (0, 0));
    assert_eq!(found(&[0, 1, 1, 2, 3, 4]), (0, 1));
    assert_eq!(found(&[0, 1, 1, 1]), (3, 2));
    assert_eq!(found(&[]), (5, 0));
}
