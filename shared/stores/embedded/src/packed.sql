-- What a study says, packed, where that takes less room; `study` is empty then. Rows of releases before stay as they are.
ALTER TABLE study ADD COLUMN packed BLOB;
-- Whether the object's file is a series of packed pieces, or the object's own bytes.
ALTER TABLE object ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
