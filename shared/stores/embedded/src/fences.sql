-- How often what was stored of a file has been taken back, whether some of it is still there, and the version of the reader
-- that was at work last.
ALTER TABLE reading ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE reading ADD COLUMN clearing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE reading ADD COLUMN reader INTEGER;
