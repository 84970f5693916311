"""Folds over the journal: what decisions and answers read of the past.

Begin with state.py, which folds every event into all projections; base.py says what a projection is.

- registry: what each file holds now; encodings: how a content is encoded where its bytes don't say
- sessions, read_sets: what each session was shown, changed and works on, and which lines it knows
- recent_versions: the latest versions of each file
- pending, active_leases, identities: what waits or is reviewed, what is reserved, who may call
- state_encoding: the whole state as bytes, and back
- version_rows, attribution: rows of file versions, and the owners of lines; functions over events, not in the state
- tags: what kind of file a path names
"""
