-- The duplicates of a study. Possible ones are not treated as duplicates.
CREATE INDEX mark_original ON mark (original, original_record) WHERE tier > 1;
