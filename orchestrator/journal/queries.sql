-- name: append_event
INSERT INTO events (seq, at, stream, stream_version, tag, session, agent, owner, request_id, request_digest, cause,
                    trace_id, client_call_id, payload, salt, payload_hash, prev_hash, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_stream
INSERT INTO streams (stream, version) VALUES (?, ?) ON CONFLICT (stream) DO UPDATE SET version = excluded.version;

-- name: streams
SELECT stream, version FROM streams;

-- name: request
SELECT digest, seq FROM requests WHERE agent = ? AND request_id = ?;

-- name: set_request
INSERT INTO requests (agent, request_id, digest, seq) VALUES (?, ?, ?, ?)
ON CONFLICT (agent, request_id) DO UPDATE SET seq = excluded.seq;

-- name: add_blob
INSERT INTO blobs (digest, size, data) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING;

-- name: blob
SELECT size, data FROM blobs WHERE digest = ?;

-- name: has_blob
SELECT 1 FROM blobs WHERE digest = ?;

-- name: all_blobs
SELECT digest FROM blobs ORDER BY digest;

-- name: add_version
INSERT INTO file_versions (path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent,
                           session, task, approval, reverts, moved_from)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (path, seq) DO NOTHING;

-- name: learn_digest
UPDATE file_versions SET digest = ?, size = ? WHERE path = ? AND seq = ? AND digest IS NULL;

-- name: versions
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions WHERE path = ? AND seq < ? ORDER BY seq DESC LIMIT ?;

-- name: version_at
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions WHERE path = ? AND effective <= ? ORDER BY seq DESC LIMIT 1;

-- name: version_with
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions WHERE path = ? AND digest = ? ORDER BY seq DESC LIMIT 1;

-- name: all_versions
SELECT path, seq, effective, at, kind, operation, digest, present, size, mode, change, agent, session, task, approval,
       reverts, moved_from
FROM file_versions ORDER BY seq, path;

-- name: last_event
SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1;

-- name: get_meta
SELECT value FROM meta WHERE key = ?;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
