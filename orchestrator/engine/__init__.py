"""The only writer: calls come in, decisions are made in core, events and effects go out.

Begin with calls.py (one call, once) and engine.py (everything is made and started there). The rooms stand in layers,
and each imports only those below it:

- administration, sessions: operations about the daemon and who calls
- conflicts: changes that could not be applied, and who resolves them
- changes: commands decided, carried out, undone, recovered
- record: the journal itself: queried, sealed, maintained
- reads: files, searches, the past, read sets
- external: what other programs changed
- approver, caller, leases: what several rooms ask
- names: all names of the workspace, from an index that hints keep current
- services: what rooms share: permissions, notes, contents, locks, paths, past_versions, the ports and the state
"""
