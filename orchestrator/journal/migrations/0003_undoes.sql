-- Which changes an undo undoes says its event, once; of each version it is enough that its change is an undo.
ALTER TABLE file_versions ADD COLUMN undoes INTEGER NOT NULL DEFAULT 0;
UPDATE file_versions SET undoes = 1 WHERE reverts <> '[]';
DROP INDEX file_versions_undoing;
ALTER TABLE file_versions DROP COLUMN reverts;
CREATE INDEX file_versions_undoing ON file_versions (seq) WHERE undoes;
