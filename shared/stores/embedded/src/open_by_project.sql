-- The imports of a project that have not ended, for its limits.
CREATE INDEX job_open ON job (project_id) WHERE ended = 0;
