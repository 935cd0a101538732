-- The least bytes that an uploaded file must have. Grants of earlier releases say only how many it may have.
ALTER TABLE upload_grant ADD COLUMN min_bytes INTEGER NOT NULL DEFAULT 1;
