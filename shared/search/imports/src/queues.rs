//! The queues and their settings.

use ::messages::{Metric, QueueSpec};
pub use ::saga::SAGA;
pub use outbox::session::CONTROL;

use crate::messages::SearchEvent;
pub use crate::queue_names::{
    CONTROL_DEAD, EVENTS, PARSE, PARSE_DEAD, PARSE_UNREADABLE, SAGA_DEAD, UPLOADS, UPLOADS_DEAD,
};

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
