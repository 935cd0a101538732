-- The attempts at reading a file: how many have not ended by themselves, and where the next one goes on.
CREATE TABLE reading (
  search_id TEXT NOT NULL,
  file_id   TEXT NOT NULL,
  begun     INTEGER NOT NULL,
  place     TEXT,
  PRIMARY KEY (search_id, file_id)
) STRICT, WITHOUT ROWID;
