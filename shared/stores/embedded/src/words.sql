-- The index of the words of studies, in parts: the words of the records of a file up to one, in buckets by their first
-- two characters. It is built after a file was marked, and deleted with the studies.
CREATE TABLE word (
  source  INTEGER NOT NULL,
  last    INTEGER NOT NULL,
  bucket  TEXT NOT NULL,
  words   BLOB NOT NULL,
  PRIMARY KEY (source, last, bucket)
) STRICT, WITHOUT ROWID;

-- The last record whose words are indexed; the largest number if all are.
ALTER TABLE parsed_file ADD COLUMN words INTEGER NOT NULL DEFAULT 0;
CREATE INDEX parsed_file_unindexed ON parsed_file (search_id, file_id) WHERE words < 9223372036854775807;
