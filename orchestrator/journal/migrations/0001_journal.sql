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
    hash           BLOB    NOT NULL,
    details        BLOB,               -- of the call that led to the event's unit: JSON, on the unit's first event
    details_hash   BLOB                -- salted as the payload's
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
    undoes     INTEGER NOT NULL,       -- which changes it undoes says its event
    moved_from TEXT,
    PRIMARY KEY (path, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_versions_by_effect ON file_versions (path, effective);
CREATE INDEX file_versions_moved ON file_versions (moved_from) WHERE moved_from IS NOT NULL;
CREATE INDEX file_versions_undoing ON file_versions (seq) WHERE undoes;

-- Permission bits that changed while the version stayed: its content is the same.
CREATE TABLE file_modes (
    path TEXT    NOT NULL,
    seq  INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    PRIMARY KEY (path, seq)
) STRICT, WITHOUT ROWID;

-- What the projections were right after event `seq`.
CREATE TABLE snapshots (
    seq     INTEGER PRIMARY KEY,
    hash    BLOB    NOT NULL,          -- of that event: a snapshot of another history is not used
    digest  BLOB    NOT NULL,          -- SHA-256 of the plain data
    version TEXT    NOT NULL,          -- of the projections that made it
    seal    BLOB    NOT NULL,          -- a keyed hash of all the others: an edited table is not believed
    data    BLOB    NOT NULL           -- zstd
) STRICT;

-- Archived events, by the file that holds them now. Other tables may name events that are in a file.
CREATE TABLE segments (
    first     INTEGER PRIMARY KEY,
    last      INTEGER NOT NULL,
    prev_hash BLOB    NOT NULL,        -- on which `first` hangs
    last_hash BLOB    NOT NULL,
    file      TEXT    NOT NULL,
    digest    TEXT    NOT NULL,
    size      INTEGER NOT NULL
) STRICT;

-- How many events each stream had when events of it were archived last; in the database it may have none left.
CREATE TABLE archived_streams (
    stream  TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
