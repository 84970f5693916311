"""Decisions about changes: pure functions from a command and facts to what is to be done.

Begin with decision.py: the facts that go in, and `Apply`, `ConflictOutcome` and `Need` that come out. Then commands.py.

- commands, patches: what callers want
- rebase: the ladder by which a change fits what a file holds now; passages, structure, anchored: its rungs
- undo, file_undo, lineage: which changes an undo reverts, file by file through moves, as one change
- costs: how much work a decision is
- recovery_verdict: what a crash left of an intent, by hashes alone
- stale_regions: which lines that a session read have changed since
"""
