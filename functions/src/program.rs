//! The program of a function whose work is only its queue and the schedule.

use std::sync::Arc;

use backend::services::LinkedServices;
use futures::future::LocalBoxFuture;
use imports::Ports;
use lambda::SettleVia;
use saga::{Function, MissingSetting, Upkeep};

use crate::SYSTEM;

/// Opens the work in the background of a function.
pub type OpenUpkeep = fn(&Ports) -> Result<Arc<dyn Upkeep>, MissingSetting>;

/// Opens the ports of a function with the settings of the environment, and runs it until Lambda stops the process. With
/// `upkeep`, its schedule also does work in the background.
///
/// The future is boxed so that it is compiled once, in this library: the compiler translates the body of an `async fn`
/// again in every program that awaits it.
///
/// # Errors
/// Returns all settings that are wrong, or the errors of [`lambda::serve`].
pub fn run(
    function: &'static Function<Ports>,
    linked: &'static LinkedServices,
    upkeep: Option<OpenUpkeep>,
) -> LocalBoxFuture<'static, Result<(), lambda_runtime::Error>> {
    Box::pin(async move {
        let observer = telemetry::for_function(imports::SYSTEM)?;
        let backend = backend::for_function(function, linked, observer).await?;
        let settling = SettleVia::with_queues(backend.has_event_sources());
        let upkeep = upkeep.map(|open| open(&backend.ports)).transpose()?;
        lambda::serve_with_upkeep(&backend.ports, &SYSTEM, function, settling, upkeep).await
    })
}
