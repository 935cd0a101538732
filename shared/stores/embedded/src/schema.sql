-- One search each; its outbox is in `outbox`.
CREATE TABLE saga (
  search_id    TEXT PRIMARY KEY NOT NULL,
  version      INTEGER NOT NULL,
  content      TEXT NOT NULL,
  completed_at INTEGER,
  expires_at   INTEGER
) STRICT;
CREATE INDEX saga_expiry ON saga (expires_at) WHERE expires_at IS NOT NULL;

-- Effects that are stored and not performed yet. `owner` is 'saga' or 'session'.
-- `ready_at` is when somebody who does not hold the claim may take the entry; none when it is poisoned.
CREATE TABLE outbox (
  seq             INTEGER PRIMARY KEY,
  owner           TEXT NOT NULL,
  owner_id        TEXT NOT NULL,
  entry_id        TEXT NOT NULL,
  kind            TEXT NOT NULL,
  payload         TEXT NOT NULL,
  due_at          INTEGER NOT NULL,
  attempts        INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL,
  claimed_until   INTEGER,
  poisoned        INTEGER NOT NULL,
  error           TEXT,
  requeued        INTEGER NOT NULL,
  ready_at        INTEGER
) STRICT;
CREATE UNIQUE INDEX outbox_entry ON outbox (owner, owner_id, entry_id);
CREATE INDEX outbox_ready ON outbox (owner, ready_at, owner_id) WHERE ready_at IS NOT NULL;

-- Transactional sessions: 'committed', or 'tombstone' when given up.
CREATE TABLE session (
  session_id TEXT PRIMARY KEY NOT NULL,
  state      TEXT NOT NULL,
  at         INTEGER NOT NULL
) STRICT;
CREATE INDEX session_age ON session (at);

-- Imports as their readers see them.
CREATE TABLE job (
  search_id  TEXT PRIMARY KEY NOT NULL,
  revision   INTEGER NOT NULL,
  ended      INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  job        TEXT NOT NULL
) STRICT;
CREATE INDEX job_unfinished ON job (created_at) WHERE ended = 0;

CREATE TABLE progress (
  search_id TEXT NOT NULL,
  file_id   TEXT NOT NULL,
  records   INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  PRIMARY KEY (search_id, file_id)
) STRICT, WITHOUT ROWID;

-- What was read. A study's id follows from search, file and record, which are its key here.
CREATE TABLE study (
  seq       INTEGER PRIMARY KEY,
  search_id TEXT NOT NULL,
  file_id   TEXT NOT NULL,
  record    INTEGER NOT NULL,
  study     TEXT NOT NULL,
  UNIQUE (search_id, file_id, record)
) STRICT;
CREATE TABLE quarantine (
  seq       INTEGER PRIMARY KEY,
  search_id TEXT NOT NULL,
  file_id   TEXT NOT NULL,
  record    INTEGER NOT NULL,
  quarantined TEXT NOT NULL,
  UNIQUE (search_id, file_id, record)
) STRICT;

-- Who is inside a partition, and which messages it still admits.
CREATE TABLE ledger (
  partition_id TEXT PRIMARY KEY NOT NULL,
  item         TEXT NOT NULL,
  expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX ledger_expiry ON ledger (expires_at);

CREATE TABLE processed (
  key        TEXT PRIMARY KEY NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX processed_expiry ON processed (expires_at);

-- All queues. A number is never used twice (AUTOINCREMENT), so that an outdated receipt fits no other message.
-- `held` tells a message in flight from one that is held back.
CREATE TABLE message (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  queue         TEXT NOT NULL,
  message_id    TEXT,
  search_id     TEXT,
  body          TEXT NOT NULL,
  sent_at       INTEGER NOT NULL,
  visible_at    INTEGER NOT NULL,
  receive_count INTEGER NOT NULL DEFAULT 0,
  held          INTEGER NOT NULL DEFAULT 0,
  moved_at      INTEGER,
  reason        TEXT
) STRICT;
CREATE INDEX message_visible ON message (queue, visible_at);

-- Rights to upload one object each.
CREATE TABLE upload_grant (
  key        TEXT PRIMARY KEY NOT NULL,
  max_bytes  INTEGER NOT NULL,
  metadata   TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;

-- Uploaded objects; `file` is the name in the folder. Replacing one takes a new number, its sequencer.
CREATE TABLE object (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  key        TEXT NOT NULL UNIQUE,
  file       TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  metadata   TEXT NOT NULL
) STRICT;

-- The decision log, numbered per search; '' for what belongs to no search.
CREATE TABLE decision (
  search_id   TEXT NOT NULL,
  n           INTEGER NOT NULL,
  observation TEXT NOT NULL,
  PRIMARY KEY (search_id, n)
) STRICT, WITHOUT ROWID;

-- Files that are still to be copied into the folder of objects.
CREATE TABLE pending_upload (
  seq        INTEGER PRIMARY KEY,
  search_id  TEXT NOT NULL,
  project_id TEXT NOT NULL,
  file_id    TEXT NOT NULL,
  path       TEXT NOT NULL,
  form       TEXT NOT NULL,
  UNIQUE (search_id, file_id)
) STRICT;
