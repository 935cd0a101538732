-- The time from which a record counts as absent. A removed record has an empty body.
ALTER TABLE record ADD COLUMN expires_at INTEGER;
CREATE INDEX record_expiry ON record (expires_at) WHERE expires_at IS NOT NULL;
