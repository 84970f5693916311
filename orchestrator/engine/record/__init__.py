"""The journal as callers meet it: queried, exported, followed; and its upkeep.

Begin with `audit.py`, whose operations answer out of the journal.

audit, event_search   pages of events, for who may read what they name
subscriptions         the live feed
journal_redaction     texts and contents taken out
verification          signed checkpoints, `journal verify`, and the check beside the service
maintenance           backup, archive, collection
snapshots             the state kept for the next start, and restored there
state_check           `journal rebuild --check`, `replay --check`, `journal compare`
"""
