//! The shipped functions, over the ports of one worker.

use std::num::NonZeroUsize;
use std::sync::Arc;

use config::Config;
use contracts::{Host, Observe, Reporter};
use dedup::ledger::NoLedger;
use dedup::{ClaimPartition, GrantTokens, ProcessedFilter};
use functions::dispatch_outbox::{self, DispatchOutbox};
use functions::notify_upload::{self, NotifyUpload};
use functions::parse_references::{self, ParseReferences};
use functions::report_faults::{self, ReportFaults};
use functions::run_saga::{self, RunSaga};
use functions::start_upload::{self, StartUpload};
use outbox::Policy;
use outbox::session::Options;
use references::Limits;
use worker::{Dispatcher, Worker};

use crate::options::Mode;
use crate::port::Port;
use crate::ports::outboxes::{SagaOutboxes, SessionOutboxes};
use crate::workload::KEY_PREFIX;

fn mode(port: &Port) -> Mode {
    port.universe.with(|world| world.config.mode)
}

pub(crate) fn start_upload(port: &Port) -> StartUpload {
    let tokens: Arc<dyn GrantTokens> = match mode(port) {
        Mode::Ledger => Arc::new(port.clone()),
        Mode::Optimistic => Arc::new(NoLedger),
    };
    let config = Config::default();
    StartUpload {
        ports: start_upload::Ports {
            sessions: Arc::new(port.clone()),
            outbox: Arc::new(SessionOutboxes(port.clone())),
            queue: Arc::new(port.clone()),
            tokens,
            presign: Arc::new(port.clone()),
            jobs: Arc::new(port.clone()),
            dispatcher: dispatcher(port, start_upload::FUNCTION),
            reporter: reporter(port, start_upload::FUNCTION),
        },
        settings: start_upload::Settings {
            key_prefix: KEY_PREFIX.to_owned(),
            max_file_bytes: config.max_file_bytes,
            upload_valid_for: config.upload_valid_for,
            session: Options::default(),
        },
    }
}

pub(crate) fn notify_upload(port: &Port) -> NotifyUpload {
    NotifyUpload {
        objects: Arc::new(port.clone()),
        queue: Arc::new(port.clone()),
        reporter: reporter(port, notify_upload::FUNCTION),
        key_prefix: KEY_PREFIX.to_owned(),
    }
}

pub(crate) fn run_saga(port: &Port) -> RunSaga {
    let ledger: Arc<dyn ClaimPartition> = match mode(port) {
        Mode::Ledger => Arc::new(port.clone()),
        Mode::Optimistic => Arc::new(NoLedger),
    };
    let ports = worker::Ports {
        read: Arc::new(port.clone()),
        write: Arc::new(port.clone()),
        ledger,
        dispatcher: dispatcher(port, run_saga::FUNCTION),
        host: Arc::new(port.clone()),
    };
    RunSaga {
        worker: Worker::new(ports, worker::Settings::default()),
        reporter: reporter(port, run_saga::FUNCTION),
        settings: run_saga::Settings { admit_untokened: mode(port) == Mode::Optimistic },
    }
}

pub(crate) fn parse_references(port: &Port) -> ParseReferences {
    let function = parse_references::FUNCTION;
    let filter = ProcessedFilter::new(function, Arc::new(port.clone()), Arc::new(port.clone()));
    ParseReferences {
        objects: Arc::new(port.clone()),
        studies: Arc::new(port.clone()),
        stored: Arc::new(port.clone()),
        progress: Arc::new(port.clone()),
        queue: Arc::new(port.clone()),
        filter: Arc::new(filter),
        reporter: reporter(port, function),
        limits: Limits::default(),
        max_quarantined_percent: 50,
        threads: NonZeroUsize::MIN,
    }
}

pub(crate) fn report_faults(port: &Port) -> ReportFaults {
    ReportFaults { queue: Arc::new(port.clone()), reporter: reporter(port, report_faults::FUNCTION) }
}

pub(crate) fn dispatch_outbox(port: &Port) -> DispatchOutbox {
    DispatchOutbox {
        sessions: Arc::new(port.clone()),
        session_outbox: Arc::new(SessionOutboxes(port.clone())),
        saga_outbox: Arc::new(SagaOutboxes(port.clone())),
        queue: Arc::new(port.clone()),
        dispatcher: dispatcher(port, dispatch_outbox::FUNCTION),
        reporter: reporter(port, dispatch_outbox::FUNCTION),
    }
}

fn dispatcher(port: &Port, function: &'static str) -> Dispatcher {
    Dispatcher {
        queue: Arc::new(port.clone()),
        jobs: Arc::new(port.clone()),
        policy: Policy::default(),
        reporter: reporter(port, function),
    }
}

fn reporter(port: &Port, function: &'static str) -> Reporter {
    let host: Arc<dyn Host> = Arc::new(port.clone());
    let observer: Arc<dyn Observe> = Arc::new(port.clone());
    Reporter { function, host, observer, began_at: None }
}
