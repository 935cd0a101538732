-- Where the bytes of each record are in its file. Numbers of their own take a few bytes, in the text they would take many.
ALTER TABLE study ADD COLUMN start INTEGER;
ALTER TABLE study ADD COLUMN length INTEGER;
