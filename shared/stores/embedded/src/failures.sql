-- What was given up, the operations on it, and who did what.
CREATE TABLE failure (
  id          TEXT PRIMARY KEY NOT NULL,
  revision    INTEGER NOT NULL,
  standing    TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  place       TEXT NOT NULL,
  partition   TEXT,
  message     TEXT NOT NULL,
  reason      TEXT NOT NULL,
  first_seen  INTEGER NOT NULL,
  last_seen   INTEGER NOT NULL,
  expires_at  INTEGER,
  failure     TEXT NOT NULL
) STRICT;
CREATE INDEX failure_standing ON failure (standing, last_seen, id);
CREATE INDEX failure_cause ON failure (standing, fingerprint, last_seen, id);
CREATE INDEX failure_expiry ON failure (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE operation (
  id         TEXT PRIMARY KEY NOT NULL,
  revision   INTEGER NOT NULL,
  begun_at   INTEGER NOT NULL,
  expires_at INTEGER,
  operation  TEXT NOT NULL
) STRICT;
-- One at a time.
CREATE UNIQUE INDEX operation_running ON operation (expires_at IS NULL) WHERE expires_at IS NULL;
CREATE INDEX operation_begun ON operation (begun_at);

CREATE TABLE act (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at  INTEGER NOT NULL,
  act TEXT NOT NULL
) STRICT;
CREATE INDEX act_age ON act (at);

-- Poisoned entries, which become failures.
CREATE INDEX outbox_poisoned ON outbox (owner, owner_id) WHERE poisoned = 1;
