-- The mark of a study that another one repeats, and where that one is: an earlier one takes its place.
ALTER TABLE study ADD COLUMN duplicate TEXT;
ALTER TABLE study ADD COLUMN original_position INTEGER;
ALTER TABLE study ADD COLUMN original_record INTEGER;
CREATE INDEX study_duplicate ON study (search_id, file_id) WHERE duplicate IS NOT NULL;

-- Files that were read to their end.
CREATE TABLE parsed_file (
  search_id TEXT NOT NULL,
  file_id   TEXT NOT NULL,
  position  INTEGER NOT NULL,
  file      TEXT NOT NULL,
  PRIMARY KEY (search_id, file_id)
) STRICT, WITHOUT ROWID;
