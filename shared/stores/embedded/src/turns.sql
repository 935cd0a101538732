-- Queues are fair: the groups of a queue (the messages of one partition each) take turns. `turn` stands at the first
-- message of each group that waits, and says since when the group waits.
ALTER TABLE message ADD COLUMN turn INTEGER;
UPDATE message SET turn = visible_at WHERE seq IN (
  SELECT seq FROM (
    SELECT seq, row_number() OVER (PARTITION BY queue, search_id ORDER BY visible_at, seq) AS place
    FROM message WHERE held = 0
  ) WHERE place = 1
);
DROP INDEX message_visible;
CREATE INDEX message_group ON message (queue, held, search_id, visible_at);
CREATE INDEX message_turn ON message (queue, turn) WHERE turn IS NOT NULL;
