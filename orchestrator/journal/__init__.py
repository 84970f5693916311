"""The journal on SQLite: every event, and the contents that events name, in a state directory.

Begin with `sqlite.py` (`SqliteJournal`); each name below is a module.

append    sqlite → writer (one thread, one transaction for all that queued) → append_validation → blobs
read      queries, with filter_sql; event_rows makes events of rows, segments reads archived ones from their files
tables    database_file (queries.sql, migrations/), versions (which content each path had), snapshot_table
files     durable_files: what SQLite does not write, put in place whole and synced
hooks     transaction_hooks: what else a unit's transaction does (redact, archive, collect, keep a snapshot)
verify    verification (chain_walk beside the service, or everything); startup_checks (a start's tail);
          signatures and signing_key for signed checkpoints
start     startup_checks; high_water_mark finds a lost end, state_files a moved directory; it holds the reserve of space
upkeep    maintenance (archive, collect, back up), backup (and restore), garbage
"""
