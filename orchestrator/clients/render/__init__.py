"""Answers as people read them in a terminal: aligned, short, and nothing in them that moves the cursor.

Begin with `rendered` in `answers.py`: one function for each type of result; a type without one comes as names and
values. `administration.py` (sessions, the daemon, approvals, agents), `conflicts.py` and `journal.py` have more of
them. `text.py` has what all share: tables, diffs, file content.
"""

from orchestrator.clients.render import administration, conflicts, journal
from orchestrator.clients.render.answers import noticed, refused, rendered

__all__ = ["administration", "conflicts", "journal", "noticed", "refused", "rendered"]
