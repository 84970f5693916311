"""The journal as callers meet it: queried, exported, followed; and its upkeep.

Begin with `audit.py`, whose operations answer out of the journal.

audit          pages of events, for who may read what they name
subscriptions  the live feed
verification   signed checkpoints, `journal verify`, and the check beside the service
maintenance    backup, archive, collection, redaction
folded_state   kept in snapshots, restored at a start; `journal rebuild --check`, `replay --check`, `journal compare`
"""
