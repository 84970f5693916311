-- The journal: events and their chain, the contents that they name, and the projections that grow without bound.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES ('journal', lower(hex(randomblob(16)))), ('epoch', '0');

CREATE TABLE events (
    seq            INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,   -- ms since the epoch
    stream         TEXT    NOT NULL,
    stream_version INTEGER NOT NULL,
    tag            TEXT    NOT NULL,
    session        TEXT,
    agent          TEXT,
    owner          TEXT,
    request_id     TEXT,
    request_digest TEXT,
    cause          INTEGER,
    trace_id       TEXT,
    client_call_id TEXT,
    payload        BLOB    NOT NULL,
    salt           BLOB    NOT NULL,
    payload_hash   BLOB    NOT NULL,
    prev_hash      BLOB    NOT NULL,
    hash           BLOB    NOT NULL
) STRICT;
-- Each ends in the rowid, which is seq: equal keys come in the journal's order.
-- A stream's version is the stream_version of its last event, found by the first of them.
CREATE INDEX events_by_stream ON events (stream);
CREATE INDEX events_by_tag ON events (tag);
CREATE INDEX events_by_agent ON events (agent) WHERE agent IS NOT NULL;
CREATE INDEX events_by_session ON events (session) WHERE session IS NOT NULL;

CREATE TABLE requests (
    agent      TEXT NOT NULL,
    request_id TEXT NOT NULL,
    digest     TEXT NOT NULL,
    seq        INTEGER NOT NULL REFERENCES events (seq),   -- first event of the last unit that carried it
    PRIMARY KEY (agent, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    digest TEXT PRIMARY KEY,
    size   INTEGER NOT NULL,           -- of the plain bytes
    data   BLOB                        -- zstd; NULL: a file in blobs/
) STRICT;

CREATE TABLE file_versions (
    path       TEXT    NOT NULL,
    seq        INTEGER NOT NULL REFERENCES events (seq),
    effective  INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    digest     TEXT,
    present    INTEGER NOT NULL,
    size       INTEGER,
    mode       INTEGER,
    change     INTEGER,
    agent      TEXT,
    session    TEXT,
    task       INTEGER,
    approval   INTEGER,
    reverts    TEXT    NOT NULL,       -- JSON array of positions
    moved_from TEXT,
    PRIMARY KEY (path, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_versions_by_effect ON file_versions (path, effective);
