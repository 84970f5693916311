"""The journal as callers meet it: queried, exported, followed; and its upkeep.

Begin with `audit.py`, whose operations answer out of the journal.

audit, event_search, entries, export   pages of events, for who may read what they name
subscriptions                          the live feed
redaction                              texts and contents taken out
checkpoints                            signed ends of the chain; `journal verify`
maintenance                            backup, archive, collection
restore, snapshots                     the state at a start, and what is kept for the next one
verification, state_check              the chain checked beside the service; `journal rebuild --check`
"""
