-- What is the same for all records of a file is said once: its search, its id and its project are here, and the other
-- tables name it by its number. Fields of a reference that say nothing are left out. A record of two bytes used to take six
-- hundred on the disk.
CREATE TABLE source (
  seq        INTEGER PRIMARY KEY,
  search_id  TEXT NOT NULL,
  file_id    TEXT NOT NULL,
  project_id TEXT,
  UNIQUE (search_id, file_id)
) STRICT;
INSERT INTO source (search_id, file_id, project_id)
  SELECT search_id, file_id, max(project_id) FROM (
    SELECT search_id, file_id, study ->> '$.project_id' AS project_id FROM study
    UNION ALL SELECT search_id, file_id, NULL FROM quarantine
    UNION ALL SELECT search_id, duplicate ->> '$.file_id', NULL FROM study WHERE duplicate IS NOT NULL
  ) GROUP BY search_id, file_id;

-- The marks of studies that repeat another one, apart from these: most are written after all studies of a file.
CREATE TABLE mark (
  source          INTEGER NOT NULL,
  record          INTEGER NOT NULL,
  original        INTEGER NOT NULL,
  position        INTEGER NOT NULL,
  original_record INTEGER NOT NULL,
  reason          TEXT NOT NULL,
  PRIMARY KEY (source, record)
) STRICT, WITHOUT ROWID;
INSERT INTO mark
  SELECT source.seq, record, original.seq, original_position, original_record, duplicate -> '$.reason'
  FROM study
  JOIN source USING (search_id, file_id)
  JOIN source AS original
    ON original.search_id = study.search_id AND original.file_id = duplicate ->> '$.file_id'
  WHERE duplicate IS NOT NULL;

CREATE TABLE compact_study (
  seq    INTEGER PRIMARY KEY,
  source INTEGER NOT NULL,
  record INTEGER NOT NULL,
  study  TEXT NOT NULL,
  UNIQUE (source, record)
) STRICT;
INSERT INTO compact_study
  SELECT seq, source, record, json_object(
    'line', line,
    'reference', json_remove(
      reference,
      iif(reference ->> '$.title' = '', '$.title', '$.none'),
      iif(reference -> '$.authors' = '[]', '$.authors', '$.none'),
      iif(reference -> '$.keywords' = '[]', '$.keywords', '$.none')
    )
  )
  FROM (
    SELECT study.seq, source.seq AS source, record, study ->> '$.line' AS line,
      -- A patch leaves out what is null.
      json_patch('{}', study -> '$.reference') AS reference
    FROM study JOIN source USING (search_id, file_id)
  ) ORDER BY seq;
DROP TABLE study;
ALTER TABLE compact_study RENAME TO study;

CREATE TABLE compact_quarantine (
  seq         INTEGER PRIMARY KEY,
  source      INTEGER NOT NULL,
  record      INTEGER NOT NULL,
  quarantined TEXT NOT NULL,
  UNIQUE (source, record)
) STRICT;
INSERT INTO compact_quarantine
  SELECT quarantine.seq, source.seq, record, quarantined -> '$.record'
  FROM quarantine JOIN source USING (search_id, file_id) ORDER BY quarantine.seq;
DROP TABLE quarantine;
ALTER TABLE compact_quarantine RENAME TO quarantine;
