//! The queues and their settings.

use ::messages::{Metric, Queue, QueueSpec};
pub use ::saga::SAGA;
pub use outbox::session::CONTROL;

use crate::messages::SearchEvent;

/// Notifications of stored objects, as S3 sends them.
pub const UPLOADS: Queue = Queue::named("uploads");
/// Dead-lettered notifications.
pub const UPLOADS_DEAD: Queue = Queue::named("uploads-dead");
/// Dead-lettered events of the saga.
pub const SAGA_DEAD: Queue = Queue::named("saga-dead");
/// Commands for the parser.
pub const PARSE: Queue = Queue::named("parse");
/// Dead-lettered commands; `report-faults` reads them.
pub const PARSE_DEAD: Queue = Queue::named("parse-dead");
/// Messages that `report-faults` cannot read.
pub const PARSE_UNREADABLE: Queue = Queue::named("parse-unreadable");
/// Dead-lettered control messages.
pub const CONTROL_DEAD: Queue = Queue::named("control-dead");
/// Notifications of ended imports, for other systems.
pub const EVENTS: Queue = Queue::named("events");

/// The timeouts of the functions behind the queues, in seconds.
const TIMEOUT_S: u64 = 30;
const CONTROL_TIMEOUT_S: u64 = 60;
const PARSE_TIMEOUT_S: u64 = 900;

/// All queues.
///
/// Receive limits: a defective message is dead-lettered at its first delivery, so the limit of 20 matters only in
/// outages of more than three hours. Waiting for a busy partition counts too. A file that crashes its function is
/// rejected before that, because the parser counts crashes itself.
pub static QUEUES: [QueueSpec; 10] = [
    QueueSpec::with_consumer(UPLOADS, UPLOADS_DEAD, 20, TIMEOUT_S, 10, 1),
    QueueSpec::without_consumer(UPLOADS_DEAD),
    QueueSpec::with_consumer(SAGA, SAGA_DEAD, 20, TIMEOUT_S, 10, 2).with_events::<SearchEvent>(),
    QueueSpec::without_consumer(SAGA_DEAD),
    QueueSpec::with_consumer(PARSE, PARSE_DEAD, 20, PARSE_TIMEOUT_S, 1, 2),
    QueueSpec::with_consumer(PARSE_DEAD, PARSE_UNREADABLE, 20, CONTROL_TIMEOUT_S, 10, 1),
    QueueSpec::without_consumer(PARSE_UNREADABLE),
    QueueSpec::with_consumer(CONTROL, CONTROL_DEAD, 20, CONTROL_TIMEOUT_S, 10, 1),
    QueueSpec::without_consumer(CONTROL_DEAD),
    QueueSpec::without_consumer(EVENTS),
];

/// Number of stored studies.
pub const STUDIES: Metric = Metric("Studies");
/// Number of files that could not be read after several attempts and were reported to their searches.
pub const UNREAD_FILES: Metric = Metric("UnreadFiles");
/// Number of records that could not be read.
pub const QUARANTINED_RECORDS: Metric = Metric("QuarantinedRecords");
