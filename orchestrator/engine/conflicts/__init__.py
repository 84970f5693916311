"""Conflicts that wait: they follow their files, are reviewed, and resolved by a person, a reviewer or the policy.

Begin with resolution.py, for a choice of a person, or with review_queue.py, for the queue of reviewers. What is
decided there is in core/conflicts; engine/changes records a conflict that is found.

- conflict_views: the queue as callers see it; review_context: one conflict as a reviewer does
- resolution: resolve_conflict, for exactly what was looked at
- proposals: what was chosen as a whole file, its checks, and the change that carries it out
- open_conflicts: open conflicts, their texts, and where they go when their file changes or moves
- review_queue: asks the reviewers of a route in turn, and takes their answers
"""
