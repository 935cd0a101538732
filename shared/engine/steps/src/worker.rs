//! The handler that calls an activity, and the report of its dead-lettered commands.

use std::marker::PhantomData;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Queue, Reporter};
use saga::ReportDeadLetters;

use crate::StepSaga;
use crate::activity::{Activity, ActivityError, Call};
use crate::event::{Command, Order, StepEvent, Verb};

/// An activity as the handler of a queue. It replies to the list that sent the command, and to `I` if the command does
/// not name its list.
pub struct Worker<I, A> {
    activity: A,
    saga: PhantomData<fn() -> I>,
}

impl<I: StepSaga, A: Activity> Worker<I, A> {
    /// Creates the handler of an activity.
    pub fn new(activity: A) -> Self {
        Self { activity, saga: PhantomData }
    }

    async fn perform(&self, call: &Call<'_, A::Input>, attempt: Option<u32>) -> Outcome<I> {
        let step = call.step.to_owned();
        Ok(match self.activity.perform(call).await {
            Ok(output) => {
                let output = serde_json::to_value(output);
                let output = output.map_err(|error| HandlerError::Permanent(chain(&error)))?;
                (format!("{step} is completed"), StepEvent::StepCompleted { step, output })
            }
            Err(ActivityError::Refused(reason)) => {
                (format!("{step} was refused: {reason}"), StepEvent::StepRefused { step, reason })
            }
            Err(ActivityError::Unknown { reason, after }) => {
                let Some(attempt) = attempt else { return Err(HandlerError::Retry { reason, after }) };
                let after_seconds =
                    after.map(|after| u32::try_from(after.as_secs().max(1)).unwrap_or(u32::MAX));
                let why = format!("{step} failed in attempt {attempt}: {reason}");
                (why, StepEvent::StepFailed { step, attempt, reason, after_seconds })
            }
        })
    }

    async fn undo(&self, call: &Call<'_, A::Input>) -> Outcome<I> {
        let step = call.step.to_owned();
        Ok(match self.activity.undo(call).await {
            Ok(()) => (format!("{step} is undone"), StepEvent::StepUndone { step }),
            Err(ActivityError::Refused(reason)) => {
                (format!("undoing {step} was refused: {reason}"), StepEvent::UndoRefused { step, reason })
            }
            Err(ActivityError::Unknown { reason, after }) => {
                return Err(HandlerError::Retry { reason, after });
            }
        })
    }
}

/// The reason for the log and the reply to the saga, or the error of the handler.
type Outcome<I> = Result<(String, StepEvent<I>), HandlerError>;

#[async_trait]
impl<I: StepSaga, A: Activity> Handler for Worker<I, A> {
    type Command = Command<A>;

    async fn handle(
        &self,
        request: &CommandMessage<Command<A>>,
        _: &Reporter,
        deadline: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let (partition, Command { verb, order }) = (request.message.partition, &request.command);
        let Order { step, attempt, input, .. } = order;
        let key = format!("{partition}/{step}");
        let call = Call { key: &key, partition, step, input, deadline };
        let (why, event) = match verb {
            Verb::Perform => self.perform(&call, *attempt).await?,
            Verb::Undo => self.undo(&call).await?,
        };
        HandlerResult::completed(why).reply_to(list_of::<I, A>(&request.command), &event)
    }
}

/// Returns the queue of the list that sent a command.
fn list_of<I: StepSaga, A: Activity>(command: &Command<A>) -> Queue {
    command.order.reply_to.clone().unwrap_or(I::QUEUE)
}

/// Reports dead-lettered commands of an activity to the lists that sent them; see [`Worker`].
pub(crate) struct DeadLetters<I, A>(PhantomData<fn() -> (I, A)>);

impl<I, A> Default for DeadLetters<I, A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<I: StepSaga, A: Activity> ReportDeadLetters for DeadLetters<I, A> {
    type Command = Command<A>;
    type Event = StepEvent<I>;

    /// Returns the failure of an attempt. A run cannot continue without the outcome of other commands, so they wait for
    /// an operator.
    fn event(&self, command: &Command<A>, reason: &str) -> Option<StepEvent<I>> {
        let Command { verb, order } = command;
        if *verb == Verb::Undo || order.until_outcome {
            return None;
        }
        Some(StepEvent::StepFailed {
            step: order.step.clone(),
            // Without a retry policy, a step has one attempt.
            attempt: order.attempt.unwrap_or(1),
            reason: format!("its command was dead-lettered: {reason}"),
            after_seconds: None,
        })
    }

    fn queue(&self, command: &Command<A>) -> Queue {
        list_of::<I, A>(command)
    }
}
