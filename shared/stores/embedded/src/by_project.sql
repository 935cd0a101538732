-- The imports of a project, for lists.
ALTER TABLE job ADD COLUMN project_id TEXT;
UPDATE job SET project_id = job ->> 'project_id';
CREATE INDEX job_by_project ON job (project_id, created_at, search_id);
