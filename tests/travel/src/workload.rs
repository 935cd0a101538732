//! Both variants in the simulator: travellers, unreliable suppliers, and the invariants at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use messages::{DecisionRecord, PartitionKey, StoreError, Verdict};
use outbox::Key;
use saga::{Engine, Saga, System};
use simulation::{
    Access, Bounds, Call, Change, CheckResult, Invariant, Mode, Rest, Rng, Scene, Violation, Workload,
};
use steps::{ClientError, Run, StepMachine, StepState, checks};

use crate::api::{BookingApi, Books, Reservation};
use crate::machine::{Phase, Trip, Trips};
use crate::planted::{Defect, Defective};
use crate::{Agency, NEWS, Ports, TripRequest, list, machine, set_budget};

const RESERVE: Call = Call::own(0, "api.reserve").late();
const RELEASE: Call = Call::own(1, "api.release").late().rare();
/// The price of a trip, and the budget of a traveller.
const CENTS: u64 = 100;
const BUDGET: u64 = 2 * CENTS;

/// A supplier that forgets a release that arrives before its reservation.
const FORGETS_RELEASES: &str = "SupplierForgetsReleases";
/// A handler that calls a supplier with another key each time.
const NEW_KEYS: &str = "NewKeyForEachCall";
/// A handler that treats a lost reply as a refusal.
const LOST_REPLY: &str = "LostReplyIsARefusal";

/// Travellers of the state machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineTravellers {
    /// The planted defect.
    pub defect: Defect,
}

/// Travellers of the list of steps.
#[derive(Debug, Clone, Default)]
pub struct ListTravellers {
    /// The planted defect.
    pub defect: Defect,
    /// A defect planted in the crate `steps`.
    pub step_defect: steps::Defect,
}

/// The state outside of the engine.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    books: Books,
    trips: BTreeMap<PartitionKey, TripRequest>,
    travellers: BTreeSet<String>,
}

/// The suppliers as a worker reaches them.
struct Api {
    access: Access<Outside>,
    /// The end of the keys under which a supplier does not remember the release of an unknown reservation.
    forgetful: Option<&'static str>,
}

#[async_trait]
impl BookingApi for Api {
    async fn reserve(&self, key: &str, _: &str) -> Result<Reservation, StoreError> {
        let (key, has_new_keys) = (key.to_owned(), self.access.has(NEW_KEYS));
        let call = self.access.call(RESERVE, move |scene: &mut Scene<'_, Outside>| {
            let is_available = !scene.rng().one_in(5);
            let key = if has_new_keys { format!("{key}/{}", scene.rng().draw()) } else { key };
            scene.books.reserve(&key, is_available)
        });
        match call.await {
            Err(_) if self.access.has(LOST_REPLY) => Ok(Reservation::Refused("no reply".to_owned())),
            result => result,
        }
    }

    async fn release(&self, key: &str) -> Result<(), StoreError> {
        let (key, forgets) = (
            key.to_owned(),
            self.access.has(FORGETS_RELEASES) || self.forgetful.is_some_and(|end| key.ends_with(end)),
        );
        let release = move |scene: &mut Scene<'_, Outside>| match forgets {
            true => scene.books.release_known(&key),
            false => scene.books.release(&key),
        };
        self.access.call(RELEASE, release).await
    }
}

const CALLS: &[Call] = &[RESERVE, RELEASE];
const DEFECTS: &[(&str, &[Mode])] =
    &[(FORGETS_RELEASES, &Mode::ALL), (NEW_KEYS, &Mode::ALL), (LOST_REPLY, &Mode::ALL)];

impl Workload for MachineTravellers {
    type Saga = Defective<Trips>;
    type Ports = Ports;
    type World = Outside;

    fn saga(&self) -> Self::Saga {
        self.defect.into_saga(Trips)
    }

    fn system(&self) -> &'static System<Ports> {
        &machine::SYSTEM
    }

    fn ports(&self, engine: Engine, access: Access<Outside>) -> Ports {
        Ports {
            engine,
            api: Arc::new(Api { access, forgetful: None }),
            defect: self.defect,
            step_defect: steps::Defect::None,
        }
    }

    fn calls(&self) -> &'static [Call] {
        CALLS
    }

    fn defects(&self) -> &'static [(&'static str, &'static [Mode])] {
        DEFECTS
    }

    fn client(&self, ports: Ports, access: Access<Outside>, rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Ok(agency) = machine::agency(&ports.engine) {
                travel(&ports, &agency, access, rng, machine::partition).await;
            }
        })
    }

    fn bounds(&self, _: &Outside, _: PartitionKey) -> Bounds {
        Bounds { messages: 24, awaited: 12, outbox: 24, ..Bounds::default() }
    }

    fn may_wait(&self, trip: &Trip) -> bool {
        matches!(trip.phase, Phase::Signalled { .. } | Phase::Releasing { .. } | Phase::Refunding { .. })
    }

    fn succeeded(&self, trip: &Trip) -> bool {
        matches!(trip.phase, Phase::Booked { .. })
    }

    fn observed(&self, _: &mut Scene<'_, Outside>, record: &DecisionRecord) -> CheckResult {
        check_signal(record)
    }

    fn check(&self, rest: &Rest<'_, Self>) -> CheckResult {
        check_trips(rest, |trip: &Trip| match trip.phase {
            Phase::Booked { .. } => Some(true),
            Phase::Abandoned { .. } => Some(false),
            _ => None,
        })
    }
}

impl ListTravellers {
    fn machine(&self) -> StepMachine<TripRequest> {
        list::trips().with_defect(self.step_defect)
    }
}

impl Workload for ListTravellers {
    type Saga = Defective<StepMachine<TripRequest>>;
    type Ports = Ports;
    type World = Outside;

    fn saga(&self) -> Self::Saga {
        self.defect.into_saga(self.machine())
    }

    fn system(&self) -> &'static System<Ports> {
        &list::SYSTEM
    }

    fn ports(&self, engine: Engine, access: Access<Outside>) -> Ports {
        Ports {
            engine,
            api: Arc::new(Api { access, forgetful: Some("/car") }),
            defect: self.defect,
            step_defect: self.step_defect,
        }
    }

    fn calls(&self) -> &'static [Call] {
        CALLS
    }

    fn defects(&self) -> &'static [(&'static str, &'static [Mode])] {
        DEFECTS
    }

    fn client(&self, ports: Ports, access: Access<Outside>, rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Ok(agency) = list::agency(&ports.engine) {
                travel(&ports, &agency, access, rng, StepMachine::<TripRequest>::partition).await;
            }
        })
    }

    fn bounds(&self, _: &Outside, _: PartitionKey) -> Bounds {
        checks::bounds(&self.machine())
    }

    fn may_wait(&self, run: &Run<TripRequest>) -> bool {
        checks::may_wait(run)
    }

    fn succeeded(&self, run: &Run<TripRequest>) -> bool {
        run.is_completed()
    }

    fn changed(&self, change: &Change<'_, Self::Saga>) -> CheckResult {
        checks::changed(&self.machine(), change)
    }

    fn observed(&self, _: &mut Scene<'_, Outside>, record: &DecisionRecord) -> CheckResult {
        checks::observed(record)?;
        check_signal(record)
    }

    fn check(&self, rest: &Rest<'_, Self>) -> CheckResult {
        let machine = self.machine();
        rest.trips.keys().try_for_each(|partition| {
            let mut performed: BTreeSet<String> = reserved(rest, *partition).map(str::to_owned).collect();
            let is_unpaid = rest.record(&Key::new("refund", format!("{partition}/budget"))).is_some();
            if rest.is_committed(*partition) && !is_unpaid {
                performed.insert("budget".to_owned());
            }
            checks::at_rest(rest, &machine, *partition, &performed, &["budget", "flight", "hotel", "car"])
        })?;
        check_trips(rest, |run: &Run<TripRequest>| run.ended_at().map(|_| run.is_completed()))?;
        rest.trips.keys().try_for_each(|partition| {
            let run = rest.state(*partition);
            let is_refused = |state: &StepState| matches!(state, StepState::UndoRefused { .. });
            match run.is_some_and(|run| run.steps.values().any(is_refused)) {
                true => violated(format!("a supplier refused to release: {run:?}")),
                false => Ok(()),
            }
        })
    }
}

/// Checks that no signal is ignored which could still take effect.
fn check_signal(record: &DecisionRecord) -> CheckResult {
    let open: &[&str] = match record.message.as_str() {
        "Resolved" | "Approved" => &["new"],
        "Cancelled" | "Rejected" => &["new", "running", "reserving", "approving"],
        _ => &[],
    };
    let is_lost = record.verdict == Verdict::Ignored
        && record.state.as_deref().is_some_and(|state| open.contains(&state));
    match is_lost {
        true => violated(format!("{} is lost: {}", record.message, record.why)),
        false => Ok(()),
    }
}

/// Returns the reserved parts of a trip.
fn reserved<'a, W: Workload<World = Outside>>(
    rest: &'a Rest<'_, W>,
    partition: PartitionKey,
) -> impl Iterator<Item = &'a str> {
    let prefix = format!("{partition}/");
    rest.books.reserved("").filter_map(move |key| key.strip_prefix(&prefix))
}

/// Checks every trip without regard to what its saga remembers of the suppliers: all parts are reserved or none, the
/// budget was charged for the booked trips, and each end was announced once. `is_booked` is `None` for a trip that has
/// not ended.
fn check_trips<W: Workload<World = Outside>>(
    rest: &Rest<'_, W>,
    is_booked: impl Fn(&<W::Saga as Saga>::State) -> Option<bool>,
) -> CheckResult {
    let mut spent = BTreeMap::new();
    for (partition, trip) in &rest.trips {
        let count = reserved(rest, *partition).count();
        let end = rest.state(*partition).map(&is_booked);
        let parts = 2 + usize::from(trip.car.is_some());
        match end {
            None if rest.is_committed(*partition) => {
                return quiescence(format!("the trip {partition} was requested, but has not begun"));
            }
            Some(None) => return quiescence(format!("the trip {partition} has not ended")),
            Some(Some(true)) if count != parts => {
                return violated(format!("{count} of {parts} parts of a booked trip are reserved"));
            }
            None | Some(Some(false)) if count > 0 => {
                return violated(format!("{count} parts of a trip that is not booked are reserved"));
            }
            _ => {}
        }
        let news = rest.effects(*partition).filter(|message| message.body.name == "TripEnded").count();
        if end.is_some() && news != 1 {
            return violated(format!(
                "the end of the trip {partition} was announced {news} times to {}",
                NEWS.name()
            ));
        }
        *spent.entry(&trip.traveller).or_insert(0) += if end == Some(Some(true)) { trip.cents } else { 0 };
    }
    for traveller in &rest.travellers {
        let Some(left) = rest.record(&Key::new("budget", traveller)) else { continue };
        let expected = BUDGET - spent.get(traveller).copied().unwrap_or(0);
        if left.body != expected {
            return violated(format!("the budget of {traveller} is {} instead of {expected}", left.body));
        }
    }
    Ok(())
}

fn violated(detail: String) -> CheckResult {
    Err(Violation { invariant: Invariant::Application, detail })
}

fn quiescence(detail: String) -> CheckResult {
    Err(Violation { invariant: Invariant::Quiescence, detail })
}

async fn travel(
    ports: &Ports,
    agency: &dyn Agency,
    access: Access<Outside>,
    mut rng: Rng,
    partition: fn(&str) -> PartitionKey,
) {
    let Ok(entry) = ports.engine.entry_point("agency") else { return };
    let traveller = format!("{:x}", rng.draw());
    access.with(|scene| scene.travellers.insert(traveller.clone()));
    if set_budget(&entry, &traveller, BUDGET).await.is_err() {
        return;
    }
    for _ in 0..rng.between(1, 2) {
        let number = format!("{:x}", rng.draw());
        let trip = TripRequest {
            traveller: traveller.clone(),
            flight: "LH 1".to_owned(),
            hotel: "Ritz".to_owned(),
            car: rng.one_in(2).then(|| "Golf".to_owned()),
            cents: CENTS,
            needs_approval: rng.one_in(2),
        };
        access.with(|scene| scene.trips.insert(partition(&number), trip.clone()));
        match agency.request(&number, &trip).await {
            Err(ClientError::Refused(_)) => continue,
            Err(_) if agency.request(&number, &trip).await.is_err() => continue,
            _ => {}
        }
        if rng.one_in(2) {
            access.sleep(Duration::from_millis(rng.between(0, 5_000))).await;
        }
        if trip.needs_approval && !rng.one_in(4) {
            let _ = match rng.one_in(3) {
                true => agency.reject(&number, "bob").await,
                false => agency.approve(&number, "bob").await,
            };
        }
        if rng.one_in(4) {
            let _ = agency.cancel(&number, "ann").await;
        }
    }
}
