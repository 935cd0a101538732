//! The host with manual time.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::task::{Context, Waker};
use std::time::Duration;

use contracts::ManualHost;
use jiff::SignedDuration;
use messages::Host;

#[test]
fn ids_ascend_and_repeat_with_the_seed() {
    let draw = |seed| {
        let host = ManualHost::seeded(seed);
        (0..1000).map(|_| host.fresh_id()).collect::<Vec<_>>()
    };
    assert!(draw(1).is_sorted());
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_eq!(draw(1).first().unwrap().get_version_num(), 7);
}

#[test]
fn random_numbers_are_spread_over_their_range() {
    let host = ManualHost::seeded(7);
    let drawn: Vec<f64> = (0..1000).map(|_| host.unit_random()).collect();
    assert!(drawn.iter().all(|number| (0.0..1.0).contains(number)));
    let mean = drawn.iter().sum::<f64>() / 1000.0;
    assert!((0.45..0.55).contains(&mean), "{mean}");
}

#[test]
fn sleep_advances_the_clock_and_is_recorded() {
    let host = ManualHost::seeded(1);
    let before = host.now();
    let mut sleep = host.sleep(Duration::from_secs(5));
    let mut context = Context::from_waker(Waker::noop());
    assert!(sleep.as_mut().poll(&mut context).is_pending(), "others may run");
    assert!(sleep.as_mut().poll(&mut context).is_ready());
    drop(sleep);
    assert_eq!(host.now().duration_since(before), SignedDuration::from_secs(5));
    assert_eq!(host.sleeps(), [Duration::from_secs(5)]);
}
