//! The six functions that a search import is made of, each a struct over the ports that it works on.
//!
//! In the order in which a search meets them:
//!
//! - [`start_upload`] answers the HTTP API: it announces a search and gives out an upload for each of its files;
//! - [`notify_upload`] tells the saga of each file that was uploaded;
//! - [`run_saga`] works on the saga queue: what happens to a search next, and what has to be sent for it;
//! - [`parse_references`] reads one file into studies, and replies to the saga;
//! - [`report_faults`] tells the saga of parse commands that never succeeded;
//! - [`dispatch_outbox`] settles sessions, and performs what a crash or a failure left undone.
//!
//! Each module says in `USES` what its function works on, and makes it of a backend with `over`; [`Functions::over`]
//! makes all six. Which stores and queues stand behind the backend no function knows, so the same code runs on Lambda,
//! in one process and in the simulator.
//!
//! Beside each module lies the `main` of its program for Lambda, which opens the backend and translates events. The
//! programs and what only they need come with the feature `lambda`, which is on unless a user of the library sets
//! `default-features = false`. `tests/events` feeds sample events to the library and to the built programs.

pub mod dispatch_outbox;
pub mod notify_upload;
pub mod parse_references;
pub mod report_faults;
pub mod run_saga;
pub mod start_upload;

use backend::{Backend, Missing};

use self::dispatch_outbox::DispatchOutbox;
use self::notify_upload::NotifyUpload;
use self::parse_references::ParseReferences;
use self::report_faults::ReportFaults;
use self::run_saga::RunSaga;
use self::start_upload::StartUpload;

/// The six functions.
#[derive(Clone)]
pub struct Functions {
    /// Announces searches.
    pub start_upload: StartUpload,
    /// Turns notifications into messages.
    pub notify_upload: NotifyUpload,
    /// Works on the saga queue.
    pub run_saga: RunSaga,
    /// Reads files.
    pub parse_references: ParseReferences,
    /// Leaves nothing unsent.
    pub dispatch_outbox: DispatchOutbox,
    /// Tells of commands that never succeeded.
    pub report_faults: ReportFaults,
}

impl Functions {
    /// The functions on one backend.
    ///
    /// # Errors
    /// When a service is not configured.
    pub fn over(backend: &Backend) -> Result<Self, Missing> {
        Ok(Self {
            start_upload: StartUpload::over(backend)?,
            notify_upload: NotifyUpload::over(backend),
            run_saga: RunSaga::over(backend)?,
            parse_references: ParseReferences::over(backend)?,
            dispatch_outbox: DispatchOutbox::over(backend)?,
            report_faults: ReportFaults::over(backend),
        })
    }
}
