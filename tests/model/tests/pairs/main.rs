//! Two sagas in every interleaving, with messages between them.
//!
//! - `exchange`: a request, its reply, and an event;
//! - `child`: a saga starts another one, and receives its result.

mod child;
mod exchange;

use mimalloc::MiMalloc;

/// Exploring takes and returns memory all the time: with the system's allocator that is half of the processor time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
