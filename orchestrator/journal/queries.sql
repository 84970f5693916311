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
SELECT coalesce((SELECT stream_version FROM events WHERE stream = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1),
                (SELECT version FROM archived_streams WHERE stream = ?1), 0);

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

-- name: journal_id
SELECT value FROM meta WHERE key = 'journal';

-- name: segments
SELECT first, last, prev_hash, last_hash, file, digest, size FROM segments ORDER BY first;

-- name: add_segment
INSERT INTO segments (first, last, prev_hash, last_hash, file, digest, size) VALUES (?, ?, ?, ?, ?, ?, ?);

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

-- name: newest_snapshot
SELECT max(seq) FROM snapshots;

-- name: payloads
SELECT seq, at, tag, payload FROM events WHERE seq > ? ORDER BY seq;

-- name: blob_sizes
SELECT digest, size FROM blobs;

-- name: drop_blob
DELETE FROM blobs WHERE digest = ?;

-- name: filed_blobs
SELECT digest, size FROM blobs WHERE data IS NULL;

-- name: named_contents
SELECT path, seq, effective, at, digest FROM file_versions ORDER BY path, seq;
