-- The journal: events and their chain, the contents that they name, and the projections that grow without bound.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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
    hash           BLOB    NOT NULL,
    UNIQUE (stream, stream_version)
) STRICT;
CREATE INDEX events_by_session ON events (session, seq);
CREATE INDEX events_by_tag ON events (tag, seq);

CREATE TABLE streams (
    stream  TEXT PRIMARY KEY,
    version INTEGER NOT NULL           -- how many events it has
) STRICT, WITHOUT ROWID;

CREATE TABLE requests (
    agent      TEXT NOT NULL,
    request_id TEXT NOT NULL,
    digest     TEXT NOT NULL,
    seq        INTEGER NOT NULL,       -- first event of the last unit that carried it
    PRIMARY KEY (agent, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    digest TEXT PRIMARY KEY,
    size   INTEGER NOT NULL,           -- of the plain bytes
    data   BLOB                        -- zstd; NULL: a file in blobs/
) STRICT;

CREATE TABLE file_versions (
    path       TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
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
