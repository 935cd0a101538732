-- The order in which the jobs of a project were written last. A job that was removed is told of in the project that it was
-- in; those that were removed before this do not say.
ALTER TABLE job ADD COLUMN changed_in TEXT;
ALTER TABLE job ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
UPDATE job SET changed_in = project_id;
CREATE INDEX job_changed ON job (changed_in, changed, search_id);
DROP INDEX job_open;
CREATE INDEX job_open ON job (project_id, changed, search_id) WHERE ended = 0;

-- Jobs by their age: of all projects, and of one project those that have not ended.
DROP INDEX job_unfinished;
CREATE INDEX job_age ON job (ended, created_at, search_id);
CREATE INDEX job_open_age ON job (project_id, created_at, search_id) WHERE ended = 0;
