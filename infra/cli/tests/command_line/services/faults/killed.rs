//! Workers that are killed, with a failing database and duplicates of every message.

use mongodb::bson::{Document, doc};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use servers::TestResult;
use servers::amazon::Service;
use servers::mongo::{FailPoint, OwnServer};
use servers::net::{Fate, Unreliable};
use testing::proof;

use super::{Environment, Worker, announce, check, have_ended, impatient, open, searches_to_import};
use crate::program::Program;

/// The number of copies of each message.
const COPIES: u32 = 3;
/// The number of different faults.
const FAULTS: usize = 6;
/// The workers' application name, which selects them for fail points.
const WORKERS: &str = "workers";

/// Two worker processes receive three copies of every message that this process sends. While they import searches,
/// faults occur in turn: a worker is killed, or the database drops connections, has write conflicts, cannot confirm
/// writes, or steps down. In addition, the ledger's table rejects every tenth request. Messages received by a killed
/// worker are redelivered after their visibility timeout.
#[tokio::test(flavor = "multi_thread")]
async fn two_workers_under_faults_import_each_once() -> TestResult {
    Environment::with(async |environment| {
        let mongod = OwnServer::replica_set(&["ttlMonitorSleepSecs=1"]).await?;
        let uri = mongod.uri().replace("directConnection=true", "replicaSet=rs0");
        let environment = environment.but("MONGODB_URI", &uri);
        let overloaded = |request| if request % 10 == 9 { Fate::THROTTLED } else { Fate::Passed };
        let ledger = Unreliable::before(&Service::DynamoDb.address(), overloaded).await;
        let program = impatient(&environment)
            .but("MONGODB_URI", &format!("{uri}&appName={WORKERS}"))
            .but(Service::DynamoDb.variable(), &ledger.address)
            .program();
        let backend = open(&environment, COPIES).await?;
        let mut faults = Faults { mongod: &mongod, random: StdRng::seed_from_u64(4), next: 0, kills: 0 };
        let mut workers = [Worker::start(&program, COPIES), Worker::start(&program, COPIES)];
        let (mut searches, rounds) = (Vec::new(), proof::size(FAULTS, 5 * FAULTS));
        for _ in 0..rounds {
            let before = searches.len();
            searches.extend(announce(&backend, &environment, searches_to_import() / rounds).await?);
            // One search has ended, so the workers are now importing the others.
            have_ended(&environment, before + 1).await?;
            faults.strike(&program, &mut workers).await?;
        }
        have_ended(&environment, searches.len()).await?;
        let throttled: usize = ledger.faults().values().sum();
        println!("{} faults, of them {} kills; {throttled} requests throttled", faults.next, faults.kills);
        assert!(throttled > searches.len() / 2);
        check(&backend, &environment, &searches, searches.len()).await?;
        workers.into_iter().for_each(Worker::finish);
        Ok(())
    })
    .await
}

struct Faults<'a> {
    mongod: &'a OwnServer,
    random: StdRng,
    next: usize,
    kills: usize,
}

impl Faults<'_> {
    async fn strike(&mut self, program: &Program, workers: &mut [Worker]) -> TestResult {
        let times = self.random.random_range(1..6);
        match self.next % FAULTS {
            0 | 3 => {
                let place = self.random.random_range(0..workers.len());
                // Replacing the worker kills the previous one.
                workers[place] = Worker::start(program, COPIES);
                self.kills += 1;
            }
            1 => self.fail(times, doc! { "closeConnection": true }).await?,
            2 => self.fail(times, doc! { "errorCode": 112 }).await?,
            4 => {
                let unconfirmed = doc! { "code": 64, "errmsg": "waiting for replication timed out" };
                self.fail(times, doc! { "writeConcernError": unconfirmed }).await?;
            }
            _ => {
                let step_down = doc! { "replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 0, "force": true };
                self.mongod.admin().await?.run_command(step_down).await?;
                self.mongod.wait_for_primary().await?;
            }
        }
        self.next += 1;
        Ok(())
    }

    /// Makes the next writes of the workers fail, and waits until they have occurred.
    async fn fail(&self, times: i32, how: Document) -> TestResult {
        let client = self.mongod.admin().await?.client().clone();
        let point =
            FailPoint::set(&client, WORKERS, times, &["update", "findAndModify", "insert"], how).await?;
        point.leave().await?;
        Ok(())
    }
}
