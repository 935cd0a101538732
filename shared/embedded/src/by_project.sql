-- The imports of a project, for lists.
CREATE INDEX job_by_project ON job (job ->> 'project_id', created_at, search_id);
