-- name: append_event
INSERT INTO events (seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
                    trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash, details, details_hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: last_event
SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1;

-- name: event
SELECT seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
       trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash, details, details_hash
FROM events WHERE seq = ?;

-- name: all_events
SELECT seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
       trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash, details, details_hash
FROM events ORDER BY seq;

-- name: events_between
SELECT seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
       trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash, details, details_hash
FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?;

-- name: replay
SELECT seq, at, session, agent, tag, payload, hash FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?;

-- name: stream_version
SELECT coalesce((SELECT stream_version FROM events WHERE stream = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1),
                (SELECT version FROM archived_streams WHERE stream = ?1), 0);

-- name: request
SELECT digest, seq FROM requests WHERE agent = ? AND request_id = ?;

-- name: set_request
INSERT INTO requests (agent, request_id, digest, seq) VALUES (?, ?, ?, ?)
ON CONFLICT (agent, request_id) DO UPDATE SET seq = excluded.seq;

-- name: all_requests
SELECT agent, request_id, digest, seq FROM requests;

-- name: add_blob
INSERT INTO blobs (digest, size, data) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING;

-- name: blob
SELECT size, data FROM blobs WHERE digest = ?;

-- name: has_blob
SELECT 1 FROM blobs WHERE digest = ?;

-- name: all_blobs
SELECT digest, size, data FROM blobs;

-- name: add_version
INSERT OR REPLACE INTO file_versions (path, seq, effective, at, kind, operation, digest, present, size, mode, change,
                                      agent, session, task, approval, undoes, moved_from)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: learn_digest
UPDATE file_versions SET digest = ?, size = ? WHERE path = ? AND seq = ? AND present AND digest IS NULL;

-- name: learn_mode
INSERT OR REPLACE INTO file_modes (path, seq, mode) SELECT v.path, ?2, ?3 FROM file_versions AS v
WHERE v.path = ?1 AND v.seq = ?4
  AND ?3 IS NOT coalesce((SELECT mode FROM file_modes WHERE path = ?1 AND seq > ?4 ORDER BY seq DESC LIMIT 1), v.mode);

-- name: all_modes
SELECT path, seq, mode FROM file_modes ORDER BY path, seq;

-- name: versions
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       undoes, moved_from
FROM file_versions WHERE path = ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: versions_until
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       undoes, moved_from
FROM file_versions WHERE path = ? AND seq <= ? ORDER BY seq;

-- name: events_of_versions
SELECT seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
       trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash, details, details_hash
FROM events WHERE seq IN (SELECT seq FROM file_versions WHERE path = ? AND seq <= ?) ORDER BY seq;

-- name: version_at
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       undoes, moved_from
FROM file_versions WHERE path = ? AND effective <= ? ORDER BY effective DESC, seq DESC LIMIT 1;

-- name: tree_at
-- From one path to the next by the index, so that a file's many versions cost nothing. One row is in the
-- recursion at a time, so its order is that of the paths, and the outer LIMIT ends it.
WITH RECURSIVE paths (path) AS (
    SELECT min(path) FROM file_versions WHERE path > ?1
    UNION ALL
    SELECT (SELECT min(path) FROM file_versions WHERE path > paths.path) FROM paths WHERE paths.path IS NOT NULL
)
SELECT v.path, v.seq, v.effective, v.at, v.kind, v.operation, v.digest, v.present, v.size,
       coalesce((SELECT mode FROM file_modes WHERE path = v.path AND seq > v.seq AND seq <= ?2
                 ORDER BY seq DESC LIMIT 1), v.mode),
       v.change, v.agent, v.session, v.task, v.approval, v.undoes, v.moved_from
FROM paths CROSS JOIN file_versions AS v
WHERE v.path = paths.path AND v.present
  AND v.seq = (SELECT seq FROM file_versions WHERE path = paths.path AND effective <= ?2
               ORDER BY effective DESC, seq DESC LIMIT 1)
LIMIT ?3;

-- name: lacking
SELECT value FROM json_each(?) WHERE value NOT IN (SELECT digest FROM blobs);

-- name: version_with
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       undoes, moved_from
FROM file_versions WHERE path = ? AND digest = ? ORDER BY seq DESC LIMIT 1;

-- name: moved_away
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       undoes, moved_from
FROM file_versions WHERE moved_from IN (SELECT value FROM json_each(?)) ORDER BY seq;

-- name: histories
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       undoes, moved_from
FROM file_versions WHERE path IN (SELECT value FROM json_each(?)) ORDER BY path, seq;

-- name: modes
SELECT path, seq, mode FROM file_modes WHERE path IN (SELECT value FROM json_each(?)) ORDER BY path, seq;

-- name: undos
SELECT DISTINCT seq FROM file_versions WHERE undoes ORDER BY seq DESC;

-- name: all_versions
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       undoes, moved_from
FROM file_versions ORDER BY path, seq;

-- name: journal_id
SELECT value FROM meta WHERE key = 'journal';

-- name: stored_payload
SELECT payload, salt FROM events WHERE seq = ?;

-- name: redact_event
UPDATE events SET payload = ?, salt = ?, details = NULL WHERE seq = ? AND salt = ?;

-- name: holding
SELECT seq FROM events WHERE instr(payload, ?1) OR instr(details, ?1) ORDER BY seq LIMIT ?2;

-- name: forget_blob
DELETE FROM blobs WHERE digest = ?;

-- name: epoch
SELECT value FROM meta WHERE key = 'epoch';

-- name: next_epoch
UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'epoch' RETURNING value;

-- name: segments
SELECT first, last, file, size, prev_hash, last_hash, digest FROM segments ORDER BY first;

-- name: add_segment
INSERT INTO segments (first, last, file, size, prev_hash, last_hash, digest) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: drop_segment
DELETE FROM segments WHERE first = ?;

-- name: note_archived_streams
INSERT INTO archived_streams (stream, version)
SELECT stream, max(stream_version) FROM events WHERE seq <= ? GROUP BY stream
ON CONFLICT (stream) DO UPDATE SET version = excluded.version;

-- name: drop_events
DELETE FROM events WHERE seq BETWEEN ? AND ?;

-- name: redacted_since
SELECT 1 FROM events WHERE tag = 'payload_redacted' AND seq > ? LIMIT 1;

-- name: payloads
SELECT seq, at, tag, payload FROM events WHERE seq > ? ORDER BY seq;

-- name: blob_sizes
SELECT digest, size FROM blobs;

-- name: spliced_blobs
SELECT digest, size, data FROM blobs WHERE substr(data, 1, 8) = CAST('splices' || char(0) AS BLOB);

-- name: filed_blobs
SELECT digest, size FROM blobs WHERE data IS NULL;

-- name: named_contents
SELECT path, seq, effective, at, digest FROM file_versions ORDER BY path, seq;

-- name: mark
SELECT value FROM meta WHERE key = ?;

-- name: set_mark
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: add_snapshot
INSERT OR REPLACE INTO snapshots (seq, hash, digest, version, seal, data) VALUES (?, ?, ?, ?, ?, ?);

-- name: drop_older_snapshots
DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?);

-- name: snapshots
SELECT seq, hash, digest, version FROM snapshots ORDER BY seq DESC;

-- name: snapshot_data
SELECT hash, digest, version, seal, data FROM snapshots WHERE seq = ?;

-- name: last_snapshot
SELECT max(seq) FROM snapshots;

-- name: kept_snapshots
SELECT seq, version, digest FROM snapshots ORDER BY seq;
