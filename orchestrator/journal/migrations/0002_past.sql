-- The past: what each call was, snapshots to start from, and events that were moved to files.
ALTER TABLE events ADD COLUMN details BLOB;        -- of the call that led to the event's unit: JSON, on the unit's first event
ALTER TABLE events ADD COLUMN details_hash BLOB;   -- salted as the payload's; NULL: header version 1

-- What the projections were right after event `seq`; one row each time.
CREATE TABLE snapshots (
    seq     INTEGER PRIMARY KEY,
    hash    BLOB    NOT NULL,          -- of that event: a snapshot of another history is not used
    digest  BLOB    NOT NULL,          -- SHA-256 of the plain data
    version TEXT    NOT NULL,          -- of the projections that made it
    data    BLOB                       -- zstd; NULL: only the digest is still kept
) STRICT;

-- Archived events, by the file that holds them now.
CREATE TABLE segments (
    first     INTEGER PRIMARY KEY,
    last      INTEGER NOT NULL,
    prev_hash BLOB    NOT NULL,        -- on which `first` hangs
    last_hash BLOB    NOT NULL,
    file      TEXT    NOT NULL,
    digest    TEXT    NOT NULL,
    size      INTEGER NOT NULL
) STRICT;

-- The same tables without a foreign key: an event may be in a file.
CREATE TABLE requests_new (
    agent      TEXT NOT NULL,
    request_id TEXT NOT NULL,
    digest     TEXT NOT NULL,
    seq        INTEGER NOT NULL,       -- first event of the last unit that carried it
    PRIMARY KEY (agent, request_id)
) STRICT, WITHOUT ROWID;
INSERT INTO requests_new SELECT agent, request_id, digest, seq FROM requests;
DROP TABLE requests;
ALTER TABLE requests_new RENAME TO requests;

CREATE TABLE file_versions_new (
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
INSERT INTO file_versions_new SELECT * FROM file_versions;
DROP TABLE file_versions;
ALTER TABLE file_versions_new RENAME TO file_versions;
CREATE INDEX file_versions_by_effect ON file_versions (path, effective);

-- Which version of the rows' making the table holds; another one's is rebuilt when the journal is opened.
INSERT INTO meta (key, value) VALUES ('file_versions', '1');
