"""External changes: what other programs do to the workspace becomes events.

Begin with observer.py: it compares one path with the registry, and notes what differs.

- observer: one path, when a caller meets it
- batch_import: which of many paths are worth a look, and their import in few commits
- batches: the changes of one burst as one group, which can be undone as one
- watch: gathers the watcher's hints and imports what they name
- baseline: the scan at a start, and the one in the background that keeps contents
"""
