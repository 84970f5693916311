"""Answers as people read them in a terminal: aligned, short, and nothing in them that moves the cursor.

Begin with `rendered` in `answers.py`, where some types have a form of their own. The others come by `generic.py`: a
summary, names and values, tables. It also has what all share: tables, file content. Diffs are in `diff_rows.py`.
"""

from orchestrator.clients.render.answers import noticed, refused, rendered
from orchestrator.clients.render.commands import for_people

__all__ = ["for_people", "noticed", "refused", "rendered"]
