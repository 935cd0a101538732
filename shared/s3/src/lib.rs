//! S3 adapters: the uploaded files.
