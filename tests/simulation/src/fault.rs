//! The faults of a schedule, and the time at which they stop.

use crate::coverage::{Call, Fault, Phase, possible};
use crate::rng::Rng;

/// The possible delays of a call: a moment, some time, longer than a lease (30 s), longer than an outbox claim (5 min);
/// none exceeds the visibility timeout of the worker's messages.
const DELAYS_MS: [Option<u64>; 8] =
    [Some(50), Some(1_000), Some(8_000), Some(31_000), Some(31_000), None, None, Some(310_000)];

/// Delays that are long enough for another worker to take over the partition. With the longest delay, another worker
/// also takes over the message.
const OVERTAKEN_MS: [Option<u64>; 6] =
    [Some(30_500), Some(31_000), Some(33_000), Some(40_000), Some(62_000), None];

/// The possible delays of a call whose caller stopped waiting.
pub(crate) const LATENESS_MS: [u64; 6] = [5, 100, 4_000, 20_000, 40_000, 100_000];

/// The delays of a worker that others overtake: another worker handles its message, its search ends, or a client
/// deletes the search.
const STANDSTILLS_MS: [u64; 4] = [45_000, 310_000, 1_500_000, 6_000_000];

/// The times between the two copies of a request: a client repeats it after 4 s without an answer, and the lost copy
/// may arrive after leases and outbox claims have ended.
pub(crate) const SECOND_COPY_MS: [u64; 4] = [4_100, 12_500, 40_000, 310_000];

/// The possible durations of an outage: a moment, longer than a lease, longer than an outbox claim, hours, and nearly
/// the day after which an outbox entry is exhausted.
const OUTAGES_MS: [u64; 5] = [3_000, 45_000, 660_000, OUTLASTED_MS, 20 * 3_600_000];

/// The longest outage that the queues outlast before they dead-letter a message: the three hours of the table's receive
/// limits, minus the cost of other faults.
const OUTLASTED_MS: u64 = 9_900_000;

/// The maximum time for which a single type of call may be unavailable.
const ALONE_MS: [u64; 3] = [3_000, 45_000, 660_000];

/// The maximum for the calls of a queue: if messages can be received but not answered, their queue dead-letters them.
const ALONE_OF_QUEUE_MS: u64 = 45_000;

/// An outage of a service: all its calls fail, or for a short time all calls of one type, as if its permission were
/// missing.
#[derive(Debug, Clone, Copy)]
struct Outage {
    call: Call,
    of_service: bool,
    from_ms: u64,
    until_ms: u64,
}

impl Outage {
    fn draw(rng: &mut Rng, calls: &[Call]) -> Self {
        let (from_ms, call, of_service) = (rng.below(60_000), rng.pick(calls), rng.one_in(2));
        let for_ms = match (of_service, call.service()) {
            (true, _) => rng.pick(&OUTAGES_MS),
            (false, "queue") => rng.pick(&ALONE_MS).min(ALONE_OF_QUEUE_MS),
            (false, _) => rng.pick(&ALONE_MS),
        };
        Self { call, of_service, from_ms, until_ms: from_ms + for_ms }
    }

    fn strikes(&self, call: Call, now: u64) -> bool {
        let is_away = if self.of_service { call.service() == self.call.service() } else { call == self.call };
        is_away && (self.from_ms..self.until_ms).contains(&now)
    }
}

/// The relative probabilities of faults.
#[derive(Debug, Clone, Copy)]
struct Weights {
    crash: u64,
    fail: u64,
    late: u64,
    delay: u64,
    stale: u64,
}

const PROFILES: [Weights; 6] = [
    Weights { crash: 3, fail: 3, late: 2, delay: 3, stale: 6 },
    Weights { crash: 1, fail: 0, late: 0, delay: 0, stale: 0 },
    Weights { crash: 0, fail: 3, late: 1, delay: 0, stale: 4 },
    Weights { crash: 0, fail: 0, late: 0, delay: 1, stale: 1 },
    Weights { crash: 0, fail: 2, late: 1, delay: 4, stale: 0 },
    Weights { crash: 1, fail: 0, late: 0, delay: 8, stale: 0 },
];

/// The faults of one schedule.
pub(crate) struct Plan {
    weights: Weights,
    /// `true` if faults occur only at the calls of an attempt.
    focused: bool,
    /// The situation that this schedule provokes, in addition to random faults.
    target: Option<(Call, Phase, Fault)>,
    /// The average number of points per fault.
    one_in: u64,
    left: u64,
    /// The call whose next requests arrive twice, and their number.
    twice: Option<(Call, u64)>,
    /// The call that delays its next worker, and the delay in milliseconds.
    race: Option<(Call, u64)>,
    /// `true` if the last write of documents failed, as when a primary is deposed.
    is_failing_over: bool,
    outage: Option<Outage>,
    /// The outage, if it has ended.
    over: Option<Outage>,
}

impl Plan {
    /// Returns the faults of a schedule with these calls. Choices from `more` do not change other schedules.
    pub(crate) fn draw(rng: &mut Rng, more: &mut Rng, calls: &[Call], races: &[Call]) -> Self {
        let weights = rng.pick(&PROFILES);
        let focused = rng.percent(40);
        let one_in = if focused { rng.pick(&[4, 7, 12]) } else { rng.pick(&[6, 15, 40, 100]) };
        // One schedule in ten has no faults, only duplicates, orders and races.
        let left = if rng.one_in(10) { 0 } else { rng.between(1, 14) };
        let target = (left > 0 && !focused)
            .then(|| (rng.pick(calls), rng.pick(&Phase::ALL), rng.pick(&Fault::AT_CALLS)));
        let outage = rng.one_in(16).then(|| Outage::draw(rng, calls));
        let twice = (left > 0 && more.one_in(4)).then(|| choose_duplicated_call(more, calls)).flatten();
        let race = (left > 0 && !races.is_empty() && more.one_in(4))
            .then(|| (more.pick(races), more.pick(&STANDSTILLS_MS)));
        let is_failing_over = false;
        let mut plan =
            Self { weights, focused, target, one_in, left, twice, race, is_failing_over, outage, over: None };
        if outage.is_some_and(|outage| outage.until_ms - outage.from_ms >= OUTLASTED_MS) {
            plan.leave_few();
        }
        plan
    }

    /// Starts an action that takes hours. The remaining receive count suffices for a few crashed workers.
    pub(crate) fn leave_few(&mut self) {
        self.left = self.left.min(4);
    }

    /// Stops all faults.
    pub(crate) fn stop(&mut self, now: u64) {
        self.left = 0;
        (self.twice, self.race) = (None, None);
        let begun = self.outage.take().filter(|outage| outage.from_ms < now);
        self.over = begun.map(|outage| Outage { until_ms: outage.until_ms.min(now), ..outage });
    }

    /// Returns `true` if the service of a call is unavailable.
    pub(crate) fn is_out(&self, call: Call, now: u64) -> bool {
        self.outage.is_some_and(|outage| outage.strikes(call, now))
    }

    /// Returns `true` if a service had an outage since this time that was longer than queues outlast.
    pub(crate) fn outlasts_queues(&self, since: u64, now: u64) -> bool {
        let is_long = |outage: Outage| outage.until_ms - outage.from_ms > OUTLASTED_MS;
        let is_met = |outage: Outage| outage.from_ms <= now && since < outage.until_ms;
        self.outage.or(self.over).is_some_and(|outage| is_long(outage) && is_met(outage))
    }

    /// Returns the start of an outage of the whole service of this call, and its duration in milliseconds.
    pub(crate) fn service_outage(&self, call: Call) -> Option<(u64, u64)> {
        let outage =
            self.outage.filter(|outage| outage.of_service && outage.call.service() == call.service())?;
        Some((outage.from_ms, outage.until_ms - outage.from_ms))
    }

    fn takes_hours(&self, now: u64) -> bool {
        let is_on = |outage: Outage| (outage.from_ms..outage.until_ms).contains(&now);
        self.outage.is_some_and(|outage| is_on(outage) && outage.until_ms - outage.from_ms >= OUTLASTED_MS)
    }

    /// Returns the end of the outage.
    pub(crate) fn back_at(&self, call: Call, now: u64) -> u64 {
        self.outage.filter(|outage| outage.strikes(call, now)).map_or(now, |outage| outage.until_ms)
    }

    /// Returns the delay before this call of a worker that others overtake.
    pub(crate) fn stall_ms(&mut self, call: Call, phase: Phase) -> Option<u64> {
        let (_, for_ms) = self.race.take_if(|(at, _)| *at == call && phase == Phase::Before)?;
        Some(for_ms)
    }

    /// Returns the delay for a worker with this visibility timeout.
    pub(crate) fn delay_ms(&self, rng: &mut Rng, hides_ms: u64) -> u64 {
        let base = if self.focused { rng.pick(&OVERTAKEN_MS) } else { rng.pick(&DELAYS_MS) };
        base.unwrap_or(hides_ms + 1_000) + rng.below(500)
    }

    /// Returns the fault at this point.
    pub(crate) fn strike(&mut self, rng: &mut Rng, call: Call, phase: Phase, now: u64) -> Fault {
        if self.is_out(call, now) && possible(call, phase, Fault::Outage) {
            return Fault::Outage;
        }
        if let Some((of, left @ 1..)) = &mut self.twice
            && *of == call
            && phase == Phase::Before
        {
            *left -= 1;
            return Fault::Twice;
        }
        // Crashes, stalls and lost answers would use up the receive count that an outage of hours needs.
        if self.left == 0 || (self.focused && !call.is_of_attempt) || self.takes_hours(now) {
            return Fault::None;
        }
        let one_in = if call.is_rare { self.one_in.div_ceil(5) } else { self.one_in };
        let reads_the_past = self.reads_the_past(rng, call, phase);
        let may_be_stale = call.may_be_stale && phase == Phase::Before;
        let fault = match self.target {
            Some((at, side, fault)) if (at, side) == (call, phase) && rng.one_in(2) => fault,
            _ if reads_the_past => Fault::Stale,
            _ if rng.one_in(one_in) => self.choose(rng, may_be_stale),
            _ => return Fault::None,
        };
        if !possible(call, phase, fault) || fault == Fault::Stale && !may_be_stale {
            return Fault::None;
        }
        let failure = matches!(fault, Fault::Fail | Fault::Late);
        self.is_failing_over |= failure && call == Call::SAGA_PERSIST;
        self.left -= 1;
        fault
    }

    /// A deposed primary not only loses writes, but also answers later reads.
    fn reads_the_past(&mut self, rng: &mut Rng, call: Call, phase: Phase) -> bool {
        let may_be_stale = call.may_be_stale && phase == Phase::Before;
        may_be_stale && std::mem::take(&mut self.is_failing_over) && rng.one_in(2)
    }

    /// Returns `true` while faults are possible.
    pub(crate) fn is_active(&self) -> bool {
        self.left > 0
    }

    fn choose(&self, rng: &mut Rng, may_be_stale: bool) -> Fault {
        let Weights { crash, fail, late, delay, stale } = self.weights;
        let drawn = rng.below(crash + fail + late + delay + if may_be_stale { stale } else { 0 });
        match drawn {
            n if n < crash => Fault::Crash,
            n if n < crash + fail => Fault::Fail,
            n if n < crash + fail + late => Fault::Late,
            n if n < crash + fail + late + delay => Fault::Delay,
            _ => Fault::Stale,
        }
    }
}

/// Chooses a call whose requests arrive twice. Rare calls are chosen more often, since few schedules make them.
fn choose_duplicated_call(rng: &mut Rng, calls: &[Call]) -> Option<(Call, u64)> {
    let calls = calls.iter().filter(|call| call.may_come_twice);
    let calls: Vec<Call> = calls.flat_map(|call| vec![*call; if call.is_rare { 3 } else { 1 }]).collect();
    (!calls.is_empty()).then(|| (rng.pick(&calls), rng.between(1, 3)))
}
