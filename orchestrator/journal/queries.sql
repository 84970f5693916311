-- name: append_event
INSERT INTO events (seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
                    trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: last_event
SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1;

-- name: event
SELECT seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
       trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash
FROM events WHERE seq = ?;

-- name: all_events
SELECT seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
       trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash
FROM events ORDER BY seq;

-- name: tail
SELECT seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
       trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash
FROM events ORDER BY seq DESC LIMIT ?;

-- name: stream_version
SELECT stream_version FROM events WHERE stream = ? AND seq <= ? ORDER BY seq DESC LIMIT 1;

-- name: request
SELECT digest, seq FROM requests WHERE agent = ? AND request_id = ?;

-- name: set_request
INSERT INTO requests (agent, request_id, digest, seq) VALUES (?, ?, ?, ?)
ON CONFLICT (agent, request_id) DO UPDATE SET seq = excluded.seq;

-- name: all_requests
SELECT agent, request_id, digest, seq FROM requests;

-- name: stray_requests
SELECT request_id, seq FROM requests WHERE seq > ? OR seq < 1;

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
                                      agent, session, task, approval, reverts, moved_from)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: learn_digest
UPDATE file_versions SET digest = ?, size = ? WHERE path = ? AND seq = ? AND present AND digest IS NULL;

-- name: versions
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions WHERE path = ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: version_at
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions WHERE path = ? AND effective <= ? ORDER BY effective DESC, seq DESC LIMIT 1;

-- name: version_with
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions WHERE path = ? AND digest = ? ORDER BY seq DESC LIMIT 1;

-- name: all_versions
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions;

-- name: epoch
SELECT value FROM meta WHERE key = 'epoch';

-- name: next_epoch
UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'epoch' RETURNING value;

-- name: mark
SELECT value FROM meta WHERE key = ?;

-- name: set_mark
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: drop_mark
DELETE FROM meta WHERE key = ? RETURNING value;

-- name: add_snapshot
INSERT OR REPLACE INTO snapshots (seq, hash, digest, version, data) VALUES (?, ?, ?, ?, ?);

-- name: thin_snapshots
UPDATE snapshots SET data = NULL WHERE data IS NOT NULL AND seq NOT IN (
    SELECT seq FROM snapshots WHERE data IS NOT NULL ORDER BY seq DESC LIMIT ?);

-- name: snapshots
SELECT seq, hash, digest, version, data IS NOT NULL FROM snapshots ORDER BY seq DESC;

-- name: snapshot_data
SELECT digest, data FROM snapshots WHERE seq = ? AND data IS NOT NULL;

-- name: last_snapshot
SELECT max(seq) FROM snapshots WHERE data IS NOT NULL;

-- name: segment_from
SELECT last, last_hash FROM segments WHERE first = ?;
