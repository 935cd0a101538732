//! The functions under seeded schedules of faults: crashes, duplicates, delays, unavailable stores and services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use onceward::async_trait;
use onceward::prelude::*;
use onceward::simulation::{
    Access, CheckResult, Config, Invariant, Mode, Range, Rest, Rng, Violation, Workload, assert_invariants,
};
use {{crate_name}}::http::{Api, partition};
use {{crate_name}}::service::{ExternalService, Unavailable};
use {{crate_name}}::{Job, Jobs, Ports, SYSTEM};

/// State outside of the application.
#[derive(Debug, Clone, Default)]
struct Outside {
    /// The jobs that clients requested, and whether the request was confirmed.
    requested: BTreeMap<PartitionKey, bool>,
    /// The idempotency keys that the service received for each input.
    carried_out: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug, Clone, Copy)]
struct Clients;

/// The service: every third request is carried out without an answer.
struct Unreliable(Access<Outside>);

#[async_trait]
impl ExternalService for Unreliable {
    async fn carry_out(&self, idempotency_key: &str, input: &str) -> Result<String, Unavailable> {
        let answers = self.0.with(|scene| {
            scene.carried_out.entry(input.to_owned()).or_default().insert(idempotency_key.to_owned());
            !scene.rng().one_in(3)
        });
        if answers { Ok(input.to_uppercase()) } else { Err(Unavailable) }
    }
}

impl Workload for Clients {
    type Saga = Jobs;
    type Ports = Ports;
    type World = Outside;

    fn saga(&self) -> Jobs {
        Jobs
    }

    fn system(&self) -> &'static System<Ports> {
        &SYSTEM
    }

    fn ports(&self, engine: Engine, access: Access<Outside>) -> Ports {
        Ports { engine, service: Arc::new(Unreliable(access)) }
    }

    fn client(&self, ports: Ports, access: Access<Outside>, mut rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Ok(api) = Api::new(&ports.engine) else { return };
            for _ in 0..rng.between(1, 2) {
                let name = format!("{:x}", rng.draw());
                access.with(|scene| scene.requested.insert(partition(&name), false));
                // A client repeats a request that failed.
                if api.request(&name, &name).await.is_ok() || api.request(&name, &name).await.is_ok() {
                    access.with(|scene| scene.requested.insert(partition(&name), true));
                }
            }
        })
    }

    fn succeeded(&self, job: &Job) -> bool {
        matches!(job, Job::Finished { .. })
    }

    fn check(&self, rest: &Rest<'_, Self>) -> CheckResult {
        if let Some((input, keys)) = rest.carried_out.iter().find(|(_, keys)| keys.len() > 1) {
            let detail = format!("{input} was carried out under {} keys", keys.len());
            return Err(Violation { invariant: Invariant::Application, detail });
        }
        for (job, is_confirmed) in &rest.requested {
            let is_open = matches!(rest.state(*job), None | Some(Job::Running { .. }));
            if *is_confirmed && (is_open || rest.view(*job).is_none()) {
                let detail = format!("job {job} was accepted and did not end");
                return Err(Violation { invariant: Invariant::Quiescence, detail });
            }
        }
        Ok(())
    }
}

#[test]
fn invariants_hold_under_faults() {
    let schedules = std::env::var("SCHEDULES").map_or(2_000, |count| count.parse().expect("SCHEDULES is a number"));
    let range = Range { first_seed: 1, count: schedules, threads: 2, stop_at_first: true };
    let summary = assert_invariants(&Clients, &Config::new(Mode::Ledger), &range);
    // The schedules prove something only if jobs finish and faults occur.
    assert!(summary.stats.completed > schedules / 4, "{:?}", summary.stats);
    assert!(summary.stats.faults > schedules, "{:?}", summary.stats);
}
