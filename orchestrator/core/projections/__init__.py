"""Folds over the journal: what decisions and answers read of the past.

Begin with state.py, which folds every event into all projections (leases are in core/leases.py);
base.py says what a projection is.

- registry, file_rows: what each file holds now, and how a content is encoded where its bytes don't say
- sessions, read_sets: what each session was shown, changed and works on, and which lines it knows
- pending, identities: what waits or is reviewed, who may call
- versions: rows of history, and the latest versions at hand; attribution: the owners of lines; neither is in the state
"""
