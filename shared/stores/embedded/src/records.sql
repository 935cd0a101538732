-- Records of the application, which sessions read and write. `revision` counts the writes.
CREATE TABLE record (
  kind     TEXT NOT NULL,
  id       TEXT NOT NULL,
  revision INTEGER NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
