//! The ids of failures and operations.

use messages::uuid_ids;

uuid_ids! {
    /// The id of a failure. It is derived from the failed message or effect, so repeated failures of it have one id.
    FailureId,
    /// The id of an operation.
    OperationId,
}
