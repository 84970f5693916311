"""Events: what happened, as it is stored for ever.

Begin with `base.py`: an event, and the envelope around each one in the journal. The events themselves:

- `files.py`: reads, changes, refusals, and what other programs did to files
- `conflicts.py`: conflicts, approvals; reviewers and their answers
- `policies.py`: which policy decides, and what was refused
- `sessions.py`: who is here, who reserved what, of what a session was notified
- `journal_maintenance.py`: checkpoints, redactions, archives

An event says by its annotations (`core/annotations.py`) which fields are paths, contents, texts to redact or
secrets, and by class variables what it is. Search, redaction, garbage collection, verification, the feed and
`visibility.py` (which also redacts) compute from that. `codec.py` finds every event of these modules by itself,
and turns events into stored bytes and back; `chain.py` links them by hashes, and has the checkpoints of that.
"""
