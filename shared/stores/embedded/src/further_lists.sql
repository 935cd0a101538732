-- The further lists of a view, also as JSON in `also_in`, and its position in each of them.
ALTER TABLE job ADD COLUMN also_in TEXT;
CREATE TABLE further_list (
  list       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  search_id  TEXT NOT NULL,
  PRIMARY KEY (list, created_at, search_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX further_list_of ON further_list (search_id);
