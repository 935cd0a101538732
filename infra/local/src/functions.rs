//! Each function, with the ports it uses and no others.

use std::sync::Arc;

use backend::Backend;
use config::Mode;
use dedup::ProcessedFilter;
use dispatch_outbox::DispatchOutbox;
use notify_upload::NotifyUpload;
use outbox::session::Options;
use parse_references::ParseReferences;
use references::Limits;
use report_faults::ReportFaults;
use run_saga::RunSaga;
use start_upload::StartUpload;
use worker::Worker;

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
    /// The functions over one backend.
    pub fn over(backend: &Backend) -> Self {
        Self {
            start_upload: start_upload(backend),
            notify_upload: notify_upload(backend),
            run_saga: run_saga(backend),
            parse_references: parse_references(backend),
            dispatch_outbox: dispatch_outbox(backend),
            report_faults: report_faults(backend),
        }
    }
}

fn start_upload(backend: &Backend) -> StartUpload {
    StartUpload {
        ports: start_upload::Ports {
            sessions: backend.store.clone(),
            outbox: backend.session_outbox(),
            queue: Arc::clone(&backend.queue),
            tokens: backend.tokens(),
            presign: backend.store.clone(),
            jobs: backend.store.clone(),
            dispatcher: backend.dispatcher(start_upload::FUNCTION),
            reporter: backend.reporter(start_upload::FUNCTION),
        },
        settings: start_upload::Settings {
            key_prefix: backend.config.key_prefix.clone(),
            max_file_bytes: backend.config.max_file_bytes,
            upload_valid_for: backend.config.upload_valid_for,
            session: Options::default(),
        },
    }
}

fn notify_upload(backend: &Backend) -> NotifyUpload {
    NotifyUpload {
        objects: backend.store.clone(),
        queue: Arc::clone(&backend.queue),
        reporter: backend.reporter(notify_upload::FUNCTION),
        key_prefix: backend.config.key_prefix.clone(),
    }
}

fn run_saga(backend: &Backend) -> RunSaga {
    let ports = worker::Ports {
        read: backend.store.clone(),
        write: backend.store.clone(),
        ledger: backend.ledger(),
        dispatcher: backend.dispatcher(run_saga::FUNCTION),
        host: Arc::clone(&backend.host),
    };
    RunSaga {
        worker: Worker::new(
            ports,
            worker::Settings { concurrency: backend.config.concurrency, ..worker::Settings::default() },
        ),
        reporter: backend.reporter(run_saga::FUNCTION),
        settings: run_saga::Settings {
            admit_untokened: backend.config.admit_untokened || backend.config.mode == Mode::Optimistic,
        },
    }
}

fn parse_references(backend: &Backend) -> ParseReferences {
    let function = parse_references::FUNCTION;
    let filter = ProcessedFilter::new(function, backend.store.clone(), Arc::clone(&backend.host));
    ParseReferences {
        objects: backend.store.clone(),
        studies: backend.store.clone(),
        progress: backend.store.clone(),
        queue: Arc::clone(&backend.queue),
        filter: Arc::new(filter),
        reporter: backend.reporter(function),
        limits: Limits {
            max_file_bytes: backend.config.max_file_bytes,
            max_record_bytes: backend.config.max_record_bytes,
        },
    }
}

fn dispatch_outbox(backend: &Backend) -> DispatchOutbox {
    DispatchOutbox {
        sessions: backend.store.clone(),
        session_outbox: backend.session_outbox(),
        saga_outbox: backend.saga_outbox(),
        queue: Arc::clone(&backend.queue),
        dispatcher: backend.dispatcher(dispatch_outbox::FUNCTION),
        reporter: backend.reporter(dispatch_outbox::FUNCTION),
    }
}

fn report_faults(backend: &Backend) -> ReportFaults {
    ReportFaults { queue: Arc::clone(&backend.queue), reporter: backend.reporter(report_faults::FUNCTION) }
}
