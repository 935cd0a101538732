//! DynamoDB adapters: the partition ledger and the memory of processed messages.
