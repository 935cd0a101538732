-- What studies of a project have in common with others, by number; and how often what a project holds has changed.
CREATE TABLE project (
  seq        INTEGER PRIMARY KEY,
  project_id TEXT NOT NULL UNIQUE,
  revision   INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO project (project_id)
  SELECT DISTINCT project_id FROM source WHERE project_id IS NOT NULL;

CREATE TABLE study_key (
  project INTEGER NOT NULL,
  key     INTEGER NOT NULL,
  source  INTEGER NOT NULL,
  record  INTEGER NOT NULL,
  PRIMARY KEY (project, key, source, record)
) STRICT, WITHOUT ROWID;

-- The same keys, eight bytes each, to find them by their study. None where they were not made yet: SQL cannot make them.
ALTER TABLE study ADD COLUMN keys BLOB;
CREATE INDEX study_without_keys ON study (seq) WHERE keys IS NULL;

-- By which state of its project a mark was made. One of tier 0 says that there is none.
ALTER TABLE mark ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
