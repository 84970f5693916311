"""External changes: what other programs do to the workspace becomes events.

Begin with observer.py: it compares one path with the registry, and notes what differs.

- observer: one path, when a caller meets it
- batch_import: many files in few commits: the scan at a start, the contents kept in the background, a watcher's hints
- first_scan: the files that are there when the daemon first looks
- batches: the changes of one burst as one group, which can be undone as one
- watch: gathers the watcher's hints and imports what they name
"""
