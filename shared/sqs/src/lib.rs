//! SQS adapters: the queues.
