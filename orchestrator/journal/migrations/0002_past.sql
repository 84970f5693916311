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

-- How many events each stream had when events of it were archived last; in the database it may have none left.
CREATE TABLE archived_streams (
    stream  TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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
CREATE INDEX file_versions_moved ON file_versions (moved_from) WHERE moved_from IS NOT NULL;
CREATE INDEX file_versions_undoing ON file_versions (change) WHERE reverts <> '[]';

-- Permission bits that changed while the version stayed: its content is the same.
CREATE TABLE file_modes (
    path TEXT    NOT NULL,
    seq  INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    PRIMARY KEY (path, seq)
) STRICT, WITHOUT ROWID;
-- Of the time before this table: the events say it. Each is held against the one before it, the first against the version.
INSERT INTO file_modes (path, seq, mode)
SELECT path, seq, mode FROM (
    SELECT v.path, e.seq, json_extract(f.value, '$.mode') AS mode,
           coalesce(lag(json_extract(f.value, '$.mode')) OVER (PARTITION BY v.path, v.seq ORDER BY e.seq), v.mode) AS before
    FROM events AS e
    JOIN json_each(CAST(e.payload AS TEXT), '$.entries') AS f
    JOIN file_versions AS v
      ON v.path = json_extract(f.value, '$.path') AND v.seq = json_extract(f.value, '$.version')
    WHERE e.tag = 'files_found' AND json_extract(f.value, '$.digest') IS NOT NULL
) WHERE mode IS NOT before;

-- Which version of the rows' making the table holds; another one's is rebuilt when the journal is opened.
INSERT INTO meta (key, value) VALUES ('file_versions', '1');
