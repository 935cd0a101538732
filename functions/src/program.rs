//! The program of a function whose work is only its queue and the schedule.

use std::sync::Arc;

use backend::services::LinkedServices;
use futures::future::LocalBoxFuture;
use imports::Ports;
use lambda::Settling;
use saga::{Function, Upkeep};
use service::words::WordIndexing;

use crate::{SYSTEM, dispatch_outbox};

/// Opens the ports of a function with the settings of the environment, and runs it until Lambda stops the process.
///
/// The future is boxed so that it is compiled once, in this library: the compiler translates the body of an `async fn`
/// again in every program that awaits it.
///
/// # Errors
/// Returns all settings that are wrong, or the errors of [`lambda::serve`].
pub fn run(
    function: &'static Function<Ports>,
    linked: &'static LinkedServices,
) -> LocalBoxFuture<'static, Result<(), lambda_runtime::Error>> {
    Box::pin(async {
        let observer = telemetry::for_function(imports::SYSTEM)?;
        let backend = backend::for_function(function, linked, observer).await?;
        let settling = Settling::with_queues(backend.has_event_sources());
        // The schedule of this function leaves most of its time unused.
        let indexing = (function.name == dispatch_outbox::NAME).then(|| WordIndexing::over(&backend.ports));
        let upkeep = indexing.transpose()?.map(|indexing| Arc::new(indexing) as Arc<dyn Upkeep>);
        lambda::serve_with_upkeep(&backend.ports, &SYSTEM, function, settling, upkeep).await
    })
}
