//! The queues, and what is agreed about each.

use messages::{Measure, Queue, QueueSpec};
pub use outbox::session::CONTROL;
pub use saga::SAGA;

/// Notifications of stored objects, as S3 sends them.
pub const UPLOADS: Queue = Queue::named("uploads");
/// Notifications that could not be handled.
pub const UPLOADS_DEAD: Queue = Queue::named("uploads-dead");
/// Events that the saga gave up on.
pub const SAGA_DEAD: Queue = Queue::named("saga-dead");
/// Commands for the parser.
pub const PARSE: Queue = Queue::named("parse");
/// Commands that never succeeded; `report-faults` reads them.
pub const PARSE_DEAD: Queue = Queue::named("parse-dead");
/// What `report-faults` cannot even read.
pub const PARSE_UNREADABLE: Queue = Queue::named("parse-unreadable");
/// Control messages that were given up on.
pub const CONTROL_DEAD: Queue = Queue::named("control-dead");
/// Announcements of how imports ended, for other systems.
pub const EVENTS: Queue = Queue::named("events");

/// The timeouts of the functions behind the queues, in seconds.
const TIMEOUT_S: u64 = 30;
const CONTROL_TIMEOUT_S: u64 = 60;
const PARSE_TIMEOUT_S: u64 = 900;

/// All queues.
///
/// The receive limits: what is wrong with a message is seen at its first delivery, and it is given up at once; so 20 only
/// cuts off outages of more than three hours, and waiting for a busy partition counts too. A file that makes its function
/// crash is refused before that, because the parser counts the crashes itself.
pub static QUEUES: [QueueSpec; 10] = [
    QueueSpec::worked(UPLOADS, UPLOADS_DEAD, 20, TIMEOUT_S, 10, 1),
    QueueSpec::kept(UPLOADS_DEAD),
    QueueSpec::worked(SAGA, SAGA_DEAD, 20, TIMEOUT_S, 10, 2),
    QueueSpec::kept(SAGA_DEAD),
    QueueSpec::worked(PARSE, PARSE_DEAD, 20, PARSE_TIMEOUT_S, 1, 2),
    QueueSpec::worked(PARSE_DEAD, PARSE_UNREADABLE, 20, CONTROL_TIMEOUT_S, 10, 1),
    QueueSpec::kept(PARSE_UNREADABLE),
    QueueSpec::worked(CONTROL, CONTROL_DEAD, 20, CONTROL_TIMEOUT_S, 10, 1),
    QueueSpec::kept(CONTROL_DEAD),
    QueueSpec::kept(EVENTS),
];

/// Studies that were stored.
pub const STUDIES: Measure = Measure("Studies");
/// Files that could not be read after several attempts, of which their searches were told.
pub const UNREAD_FILES: Measure = Measure("UnreadFiles");
/// Records that could not be read.
pub const QUARANTINED_RECORDS: Measure = Measure("QuarantinedRecords");
