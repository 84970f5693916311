"""The journal on SQLite: every event, and the contents that events name, in a state directory.

Begin with `sqlite.py` (`SqliteJournal`); each name below is a module.

append    sqlite → writer (one thread, one transaction for all that queued) → append_validation → blobs
read      queries; event_rows makes events of rows and SQL of filters, segments reads archived events from their files
tables    database_file (queries.sql, migrations/), versions (which content each path had), snapshot_table
files     state_files: written whole and synced, watched while they are open; the reserve of space
verify    verification (the chain beside the service, or everything), by event_rows.ChainWalk; signatures
start     startup_checks; high_water_mark finds a lost end
upkeep    maintenance (archive, collect, back up), backup (and restore)
"""
