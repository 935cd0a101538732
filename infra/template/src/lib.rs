//! A request is accepted, carried out by an external service, and completed or abandoned after an hour.

pub mod http;
pub mod service;

use onceward::dedup::{CommandMessage, HandlerResult};
use onceward::prelude::*;
use serde::{Deserialize, Serialize};

use crate::service::ExternalService;

/// The queue of commands.
pub const WORK: Queue = Queue::named("work");
/// The time after which a job is abandoned.
pub const DEADLINE: SignedDuration = SignedDuration::from_hours(1);

messages! {
    /// The events of a job.
    #[allow(missing_docs, reason = "the names of the fields say it")]
    pub enum JobEvent of "{{project-name}}" to SAGA {
        /// A client requested the job.
        Requested { input: String } = 1,
        /// The service carried the job out.
        Finished { output: String } = 1,
        /// The service did not answer in time.
        Expired {} = 1,
    }
}

messages! {
    /// Commands for the handler.
    #[allow(missing_docs, reason = "the names of the fields say it")]
    pub enum Command of "{{project-name}}" to WORK {
        /// Carry out a job, and report its output.
        CarryOut { input: String } = 1,
    }
}

/// The state of a job. The default is the state of an unknown job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Job {
    /// The job is unknown.
    #[default]
    Unknown,
    /// The job waits for the service.
    Running { since: Timestamp },
    /// The job is done.
    Finished { output: String, since: Timestamp, at: Timestamp },
    /// The job was abandoned.
    Expired { since: Timestamp, at: Timestamp },
}

/// The state machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jobs;

impl Saga for Jobs {
    const NAME: &'static str = "jobs";
    type State = Job;
    type Event = JobEvent;

    fn transition(&self, job: &Job, event: &Event<'_, JobEvent>, now: Timestamp) -> Decision<Job> {
        match (job, event.body) {
            (Job::Unknown, JobEvent::Requested { input }) => {
                let due_at = now.saturating_add(DEADLINE).unwrap_or(Timestamp::MAX);
                Decision::to(Job::Running { since: now }, "waiting for the service")
                    .ask(&Command::CarryOut { input: input.clone() })
                    .schedule("deadline", due_at, &JobEvent::Expired {})
                    .show()
                    .into()
            }
            (Job::Running { since }, JobEvent::Finished { output }) => {
                let finished = Job::Finished { output: output.clone(), since: *since, at: now };
                Decision::to(finished, "the service answered").cancel("deadline").show().into()
            }
            (Job::Running { since }, JobEvent::Expired {}) => {
                let expired = Job::Expired { since: *since, at: now };
                Decision::to(expired, "the service did not answer in time").show().into()
            }
            _ => Decision::ignore("not expected in this state"),
        }
    }

    fn ended_at(&self, job: &Job) -> Option<Timestamp> {
        match job {
            Job::Finished { at, .. } | Job::Expired { at, .. } => Some(*at),
            Job::Unknown | Job::Running { .. } => None,
        }
    }

    fn view(&self, partition: PartitionKey, job: &Job) -> Option<View> {
        // Lists are ordered by this time, and jobs that wait for too long are reported by it.
        let created_at = match job {
            Job::Running { since } | Job::Finished { since, .. } | Job::Expired { since, .. } => *since,
            Job::Unknown => return None,
        };
        let view = View::of(partition, job, self.ended_at(job).is_some()).ok()?;
        Some(View { created_at, ..view })
    }

    /// A request needs two tokens: for the reply, and for the timer.
    fn tokens(&self, events: &[&JobEvent]) -> usize {
        2 * events.len()
    }
}

/// The ports of the functions: the engine's, and the external service.
#[derive(Clone)]
pub struct Ports {
    /// The engine.
    pub engine: Engine,
    /// The external service.
    pub service: Arc<dyn ExternalService>,
}

impl AsRef<Engine> for Ports {
    fn as_ref(&self) -> &Engine {
        &self.engine
    }
}

impl AsMut<Engine> for Ports {
    fn as_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

/// Carries out jobs. It may be called twice with one command; the service then receives the same key.
struct CarryOut {
    service: Arc<dyn ExternalService>,
}

#[async_trait]
impl Handler for CarryOut {
    type Command = Command;

    async fn handle(
        &self,
        request: &CommandMessage<Command>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let Command::CarryOut { input } = &request.command;
        let key = request.message.id.to_string();
        match self.service.carry_out(&key, input).await {
            Ok(output) => HandlerResult::completed("carried out").reply(&JobEvent::Finished { output }),
            Err(error) => Err(HandlerError::Retry { reason: error.to_string(), after: None }),
        }
    }
}

/// The queues.
pub static QUEUES: [QueueSpec; 6] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")).with_events::<JobEvent>(),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(WORK, Queue::named("work-dead")),
    QueueSpec::without_consumer(Queue::named("work-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 3] = [CONTROL, SAGA, WORK];
/// The dead-letter queues.
static DEAD: [Queue; 3] =
    [Queue::named("saga-dead"), Queue::named("work-dead"), Queue::named("control-dead")];

/// Runs the state machine.
pub static RUN_JOBS: Function<Ports> = Function::saga::<Jobs>(&SENDS);
/// Runs the handler.
pub static WORKER: Function<Ports> = Function {
    name: "worker",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(WORK),
    sends: &[SAGA],
    drains: &[],
    build: Some(|ports| ports.engine.guard("worker", CarryOut { service: Arc::clone(&ports.service) })),
};
/// Settles sessions, sends timers and effects that a crash left unsent, and stores dead letters as failures.
pub static DISPATCH_OUTBOX: Function<Ports> = Function::dispatch_outbox_and_failures(&SENDS, &DEAD);
/// Accepts and shows jobs.
pub static HTTP: Function<Ports> = Function {
    name: "http",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Requests,
    sends: &[CONTROL, SAGA],
    drains: &[],
    build: None,
};

/// The application.
pub static SYSTEM: System<Ports> = System {
    name: "{{project-name}}",
    queues: &QUEUES,
    functions: &[&RUN_JOBS, &WORKER, &DISPATCH_OUTBOX, &HTTP],
};
