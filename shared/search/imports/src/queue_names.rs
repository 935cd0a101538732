//! The names of the queues.

use ::messages::Queue;

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
