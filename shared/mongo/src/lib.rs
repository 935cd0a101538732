//! MongoDB adapters: saga documents, jobs, studies and transactional sessions.
