//! All functions on one backend.

use backend::{Backend, Missing};
use dispatch_outbox::DispatchOutbox;
use notify_upload::NotifyUpload;
use parse_references::ParseReferences;
use report_faults::ReportFaults;
use run_saga::RunSaga;
use start_upload::StartUpload;

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
