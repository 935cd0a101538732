//! The worker that carries out the operator's tasks.

use std::sync::Arc;
use std::time::Duration;

use messages::Host;
use saga::{Control, ControlError, SendEventError};

use super::Task;
use crate::application::{Application, engine};
use crate::coverage::{Call, Phase};
use crate::options::{Invariant, Mutant};
use crate::point::Kind;
use crate::port::Port;
use crate::world::World;

/// The delays of a command that failed, as an operator waits longer for a service that is away.
const AGAIN: [Duration; 3] = [Duration::from_secs(20), Duration::from_secs(300), Duration::from_secs(3_600)];

/// Carries out the tasks of the operator.
pub(crate) async fn control(port: Port, application: Arc<dyn Application>) {
    let engine = engine(application.system(), &port);
    let (sleep, mut tries) = (Kind::Call(Call::HOST_SLEEP, Phase::Before), 0);
    while let Some(task) = port.perform(|world| world.controls.task.clone()) {
        port.perform(World::begin_batch);
        // `None` if the command has to be repeated.
        let is_refused = match &task {
            Task::Choose(at) | Task::Wait(_, at) => {
                port.stop_at(sleep, *at).await;
                Some(false)
            }
            Task::Begin(partition, _) | Task::Resume(partition) => {
                let control = if let Task::Begin(_, control) = task { control } else { Control::Resume };
                match engine.control(*partition, control, "operator", "").await {
                    Ok(_) => Some(false),
                    Err(ControlError::Unknown(_) | ControlError::Ended(_)) => Some(true),
                    Err(ControlError::Busy(_) | ControlError::Missing(_) | ControlError::Store(_)) => None,
                }
            }
            Task::Send(event) => {
                let mut event = event.clone();
                if port.has(Mutant::OperatorEventRepeated) {
                    event.key = port.perform(World::fresh_id).to_string();
                }
                match application.send_event(&port, event).await {
                    Ok(_) => Some(false),
                    Err(SendEventError::UnknownInstance(_) | SendEventError::Ended(_)) => Some(true),
                    Err(SendEventError::Store(_) | SendEventError::Commit(_)) => None,
                    Err(error) => {
                        let detail = || format!("the event of an operator was refused: {error}");
                        return port.perform(|world| world.violate(Invariant::Application, detail));
                    }
                }
            }
        };
        match is_refused {
            Some(is_refused) => {
                tries = 0;
                port.perform(|world| world.complete(&task, is_refused));
            }
            None => {
                port.sleep(AGAIN[(tries / 3).min(AGAIN.len() - 1)]).await;
                tries += 1;
            }
        }
    }
}
